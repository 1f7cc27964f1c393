from __future__ import annotations

import asyncio
import contextlib
import random
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

import pytest

from mcm.api.core import NODES
from mcm.client.client import Client
from mcm.client.errors import RequestTimeout
from mcm.client.throttle import Throttle
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import LoopClock
from mcm.simulation.virtualtime import run_virtual

CLOCK = LoopClock(datetime(2024, 1, 1, tzinfo=UTC))


def test_no_more_are_in_flight_than_allowed() -> None:
    running = peak = 0

    async def main() -> None:
        throttle = Throttle(clock=CLOCK, max_in_flight=3)

        async def one() -> None:
            nonlocal running, peak
            await throttle.enter()
            running += 1
            peak = max(peak, running)
            await CLOCK.sleep(1)
            running -= 1
            throttle.leave()

        await asyncio.gather(*(one() for _ in range(10)))

    run_virtual(main)
    assert peak == 3


def test_requests_are_spread_at_the_rate_in_order() -> None:
    async def main() -> list[float]:
        throttle = Throttle(clock=CLOCK, max_in_flight=0, qps=1, burst=1)
        started: list[float] = []

        async def one() -> None:
            await throttle.enter()
            started.append(CLOCK.monotonic())
            throttle.leave()

        await asyncio.gather(*(one() for _ in range(4)))
        return started

    assert run_virtual(main) == [0, 1, 2, 3]


def test_who_gives_up_waiting_costs_the_others_nothing() -> None:
    async def main() -> float:
        throttle = Throttle(clock=CLOCK, max_in_flight=0, qps=1, burst=1)
        await throttle.enter()
        throttle.leave()
        waiting = asyncio.ensure_future(throttle.enter())
        await CLOCK.sleep(0.5)
        waiting.cancel()
        await asyncio.wait([waiting])
        await throttle.enter()
        return CLOCK.monotonic()

    assert run_virtual(main) == pytest.approx(1.0)


# Turns --------------------------------------------------------------------------------------------


def test_who_came_first_is_first() -> None:
    async def main() -> list[int]:
        throttle, turns = Throttle(clock=CLOCK, max_in_flight=1), []

        async def one(number: int) -> None:
            await throttle.enter()
            turns.append(number)
            throttle.leave()

        await throttle.enter()
        async with asyncio.TaskGroup() as group:
            for number in range(9):
                group.create_task(one(number))
            await CLOCK.sleep(0)
            throttle.leave()
        return turns

    assert run_virtual(main) == list(range(9))


@pytest.mark.parametrize("given_up", range(4))
def test_who_is_cancelled_takes_no_turn_along(given_up: int) -> None:
    """While it waits, or in the moment in which it is its turn."""

    async def main() -> list[int]:
        throttle, turns = Throttle(clock=CLOCK, max_in_flight=1), []

        async def one(number: int) -> None:
            await throttle.enter()
            turns.append(number)
            throttle.leave()

        for moment in (False, True):
            await throttle.enter()
            tasks = [asyncio.ensure_future(one(number)) for number in range(4)]
            await CLOCK.sleep(0)
            if moment:
                throttle.leave()
            tasks[given_up].cancel()
            if not moment:
                throttle.leave()
            await asyncio.wait(tasks)
            assert throttle.in_flight == 0
        return turns

    rest = [number for number in range(4) if number != given_up]
    assert run_virtual(main) == rest * 2


# A server that can bear less than we may send -----------------------------------------------------


class BusyServer:
    """Takes its time, and refuses at once what is more than it ``bears`` under way."""

    def __init__(self, bears: int) -> None:
        self.bears = bears
        self.under_way = self.served = self.refused = 0

    async def request(self, request: Request) -> Response:
        if self.under_way >= self.bears:
            self.refused += 1
            await CLOCK.sleep(0.001)
            return Response(429, {"retry-after": "1"}, b"{}")
        self.under_way += 1
        await CLOCK.sleep(0.05)
        self.under_way -= 1
        self.served += 1
        return Response(200, {}, b'{"metadata":{"name":"n","resourceVersion":"1"}}')

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        raise NotImplementedError

    async def aclose(self) -> None:
        pass


WORKERS, EACH = 50, 40


@pytest.mark.parametrize("bears", [1, 3, 8, 30])
def test_a_server_that_bears_little_refuses_little_and_stays_busy(bears: int) -> None:
    """Fifty workers that want forty things each, one after the other."""

    async def main() -> None:
        server = BusyServer(bears)
        client = Client(server, clock=CLOCK, max_in_flight=64, random=random.Random(1))

        async def work() -> None:
            for _ in range(EACH):
                await client.patch(NODES, "n", {"metadata": {"labels": {"a": "b"}}})

        began = CLOCK.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work())
        whole = WORKERS * EACH
        assert server.served == whole
        assert server.refused <= 64 + 0.1 * whole
        least = whole / bears * 0.05
        # The last of them is done hardly later than all could be: no worker was left behind.
        assert CLOCK.monotonic() - began <= 1.4 * least + 3

    run_virtual(main)


def test_it_goes_at_full_width_again_once_the_server_can() -> None:
    async def main() -> None:
        server = BusyServer(bears=2)
        client = Client(server, clock=CLOCK, max_in_flight=40, random=random.Random(1))
        widest = [0]

        async def work() -> None:
            while not over:
                await client.patch(NODES, "n", {"metadata": {"labels": {"a": "b"}}})
                widest[0] = max(widest[0], server.under_way)

        over: list[bool] = []
        async with asyncio.TaskGroup() as group:
            for _ in range(40):
                group.create_task(work())
            await CLOCK.sleep(30)
            assert widest[0] <= 2
            server.bears, served = 1000, server.served
            while widest[0] < 39:
                await CLOCK.sleep(0.1)
                assert server.served - served <= 40 * 40
            over.append(True)

    run_virtual(main)


class HalfDeafServer(BusyServer):
    """Never answers what is about ``deaf``; all else at once."""

    async def request(self, request: Request) -> Response:
        if request.path.endswith("/deaf"):
            await CLOCK.sleep(request.timeout or 0.0)
            raise RequestTimeout("no answer")
        return await super().request(request)


def test_requests_that_are_not_answered_take_no_places_from_others() -> None:
    """A webhook or a network that swallows some objects' requests says nothing of the server: were
    it asked for less, those that hang would hold all that is left."""

    async def main() -> float:
        client = Client(
            HalfDeafServer(1000), clock=CLOCK, random=random.Random(7), max_in_flight=64
        )

        async def ask_for_ever() -> None:
            while True:
                with contextlib.suppress(RequestTimeout):
                    await client.get(NODES, "deaf")

        deaf = [asyncio.create_task(ask_for_ever()) for _ in range(20)]
        try:
            await CLOCK.sleep(600)
            asked = CLOCK.monotonic()
            async with asyncio.TaskGroup() as group:
                for number in range(440):
                    group.create_task(client.get(NODES, f"n-{number}"))
            return CLOCK.monotonic() - asked
        finally:
            for task in deaf:
                task.cancel()

    assert run_virtual(main) == pytest.approx(0.5, abs=0.01)  # ten rounds of 44
