from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from mcm.client.throttle import Throttle
from mcm.clock import LoopClock
from mcm.simulation.virtualtime import run_virtual

CLOCK = LoopClock(datetime(2024, 1, 1, tzinfo=UTC))


def test_no_more_are_in_flight_than_allowed() -> None:
    running = peak = 0

    async def main() -> None:
        throttle = Throttle(clock=CLOCK, max_in_flight=3)

        async def one() -> None:
            nonlocal running, peak
            async with throttle.turn():
                running += 1
                peak = max(peak, running)
                await CLOCK.sleep(1)
                running -= 1

        await asyncio.gather(*(one() for _ in range(10)))

    run_virtual(main)
    assert peak == 3


def test_requests_are_spread_at_the_rate_in_order() -> None:
    async def main() -> list[float]:
        throttle = Throttle(clock=CLOCK, max_in_flight=0, qps=1, burst=1)
        started: list[float] = []

        async def one() -> None:
            async with throttle.turn():
                started.append(CLOCK.monotonic())

        await asyncio.gather(*(one() for _ in range(4)))
        return started

    assert run_virtual(main) == [0, 1, 2, 3]


def test_who_gives_up_waiting_costs_the_others_nothing() -> None:
    async def main() -> float:
        throttle = Throttle(clock=CLOCK, max_in_flight=0, qps=1, burst=1)
        async with throttle.turn():
            pass
        waiting = asyncio.ensure_future(throttle.turn().__aenter__())
        await CLOCK.sleep(0.5)
        waiting.cancel()
        await asyncio.wait([waiting])
        async with throttle.turn():
            return CLOCK.monotonic()

    assert run_virtual(main) == pytest.approx(1.0)
