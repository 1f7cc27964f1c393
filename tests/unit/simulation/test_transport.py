from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

import orjson
import pytest

from mcm.client.errors import ConnectionRefused, RequestTimeout, TransportError
from mcm.client.transport import Request
from mcm.simulation.faults import Broken, FaultPlan, WatchEnd, error_line
from mcm.simulation.virtualtime import run_virtual
from tests.unit.sandbox_core.line import FaultyLine, create_later
from tests.unit.sandbox_core.workbench import CONFIG_MAPS, MERGE, PODS, config_map


def play(scene: Callable[[FaultyLine], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene(FaultyLine())

    run_virtual(main)


# Faults of requests -----------------------------------------------------------------------------


def test_an_injected_answer_never_reaches_the_server() -> None:
    async def scene(line: FaultyLine) -> None:
        fault = line.faults.answer(
            429, method="POST", path="/configmaps", times=2, skip=1, retry_after=7
        )
        line.api.server.requests.reset()
        statuses = [
            await line.status("POST", CONFIG_MAPS, config_map(name))
            for name in ("a", "b", "c", "d")
        ]
        assert statuses == [201, 429, 429, 201]
        assert line.api.server.requests.writes() == 2
        assert fault.hits == 2 and fault.spent
        line.faults.answer(500, "Odd", "words")
        response = await line.transport.request(line.api.request("GET", PODS))
        body = orjson.loads(response.body)
        assert (body["reason"], body["message"], body["code"]) == ("Odd", "words", 500)

    play(scene)


def test_an_injected_answer_carries_its_retry_after() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.answer(503, retry_after=7)
        response = await line.transport.request(line.api.request("GET", PODS))
        assert response.headers["retry-after"] == "7"
        assert orjson.loads(response.body)["details"] == {"retryAfterSeconds": 7}

    play(scene)


def test_a_refused_connection_changes_nothing() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.refuse(times=1)
        with pytest.raises(ConnectionRefused):
            await line.status("POST", CONFIG_MAPS, config_map("a"))
        assert line.api.names(CONFIG_MAPS) == []
        assert await line.status("POST", CONFIG_MAPS, config_map("a")) == 201

    play(scene)


def test_a_lost_answer_is_of_a_write_that_happened() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.lose_answers()
        assert await line.status("GET", PODS) == 200
        with pytest.raises(TransportError):
            await line.status("POST", CONFIG_MAPS, config_map("a"))
        assert line.api.names(CONFIG_MAPS) == ["a"]

    play(scene)


def test_the_start_of_a_watch_can_be_lost_without_a_trace() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.lose_answers(method="GET")
        assert await line.watched() == ["TransportError"]
        assert line.api.server.watch_count == 0

    play(scene)


def test_delays_add_up_and_run_into_the_timeout() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.delay(2.0, back=3.0, path="/pods")
        line.faults.delay((1.0, 1.5), path="/pods")
        await line.status("GET", PODS)
        assert 6.0 <= line.now <= 6.5
        started = line.now
        line.faults.delay(60.0, path="/pods")
        with pytest.raises(RequestTimeout):
            await line.status("GET", PODS)
        assert line.now - started == 30.0

    play(scene)


def test_a_write_that_is_forbidden_on_its_way_changes_nothing() -> None:
    async def scene(line: FaultyLine) -> None:
        def permit() -> None:
            if line.now >= 1.0:
                raise PermissionError

        line.faults.delay(2.0)
        request = line.api.request("POST", CONFIG_MAPS, config_map("a"))
        with pytest.raises(PermissionError):
            await line.transport.request(replace(request, permit=permit))
        assert line.api.names(CONFIG_MAPS) == []

    play(scene)


def test_an_answer_that_comes_too_late_was_applied_all_the_same() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.delay(0.0, back=60.0)
        with pytest.raises(RequestTimeout):
            await line.status("POST", CONFIG_MAPS, config_map("a"))
        assert line.api.names(CONFIG_MAPS) == ["a"]

    play(scene)


def test_a_hanging_server_is_given_up_and_not_reached() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.add(Broken.HANGS, times=1)
        with pytest.raises(RequestTimeout):
            await line.status("POST", CONFIG_MAPS, config_map("a"))
        assert line.now == 30.0
        line.faults.add(Broken.RESET, times=1)
        with pytest.raises(TransportError):
            await line.status("POST", CONFIG_MAPS, config_map("a"))
        assert line.api.names(CONFIG_MAPS) == []

    play(scene)


# Faults of watches ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "ending"),
    [
        (WatchEnd.CLOSED, "end"),
        (WatchEnd.RESET, "TransportError"),
        (WatchEnd.FROZEN, "RequestTimeout"),
    ],
)
def test_a_running_watch_ends_as_planned(how: WatchEnd, ending: str) -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.end_watches(how=how, after=2.5, times=1)
        creating = asyncio.create_task(create_later(line, "a", "b", "c", "d"))
        assert await line.watched(read_timeout=20) == ["a", "b", ending]
        # Silence counts from the last event.
        assert line.now == (22.0 if how is WatchEnd.FROZEN else 2.5)
        assert line.api.server.watch_count == 0
        await creating

    play(scene)


@pytest.mark.parametrize(("how", "tail"), [(WatchEnd.RESET, []), (WatchEnd.TORN, ["garbage"])])
def test_a_watch_ends_after_so_many_events(how: WatchEnd, tail: list[str]) -> None:
    async def scene(line: FaultyLine) -> None:
        for name in "abcd":
            line.api.create(CONFIG_MAPS, config_map(name))
        line.faults.end_watches(how=how, events=2, times=1)
        assert await line.watched() == ["a", "b", *tail, "TransportError"]
        assert (await line.watched())[-1] == "end"

    play(scene)


def test_a_torn_watch_waits_for_the_event_it_tears() -> None:
    async def scene(line: FaultyLine) -> None:
        line.api.create(CONFIG_MAPS, config_map("a"))
        line.faults.end_watches(how=WatchEnd.TORN, events=1)
        creating = asyncio.create_task(create_later(line, "b", every=9.0))
        assert await line.watched() == ["a", "garbage", "TransportError"]
        assert line.now == 9.0
        await creating

    play(scene)


def test_a_watch_can_end_before_its_first_event() -> None:
    async def scene(line: FaultyLine) -> None:
        line.api.create(CONFIG_MAPS, config_map("a"))
        line.faults.end_watches(events=0, times=1)
        assert await line.watched() == ["end"]
        line.faults.end_watches(times=1)
        assert await line.watched(read_timeout=1) == ["a", "end"]

    play(scene)


def test_last_words_are_sent_before_the_end() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.end_watches(after=1.0, line=error_line(410), times=1)
        assert await line.watched() == ["ERROR", "end"]
        line.faults.end_watches(after=1.0, line=b"{nonsense\n", how=WatchEnd.RESET)
        assert await line.watched() == ["garbage", "TransportError"]

    play(scene)


def test_running_watches_can_be_cut_at_any_moment() -> None:
    async def scene(line: FaultyLine) -> None:
        tasks = [asyncio.create_task(line.watched()) for _ in range(3)]
        await line.api.clock.sleep(4)
        line.api.create(CONFIG_MAPS, config_map("never-seen"))
        assert line.faults.cut_watches() == 3
        assert await asyncio.gather(*tasks) == [["TransportError"]] * 3
        assert line.now == 4.0
        assert line.faults.cut_watches() == 0

    play(scene)


def test_events_of_a_watch_can_lag_behind() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.delay_events(3.0)
        creating = asyncio.create_task(create_later(line, "a", "b", "c", every=2.0))
        async with line.transport.stream(line.watch_request()) as response:
            times = {}
            async for chunk in response.chunks:
                times[line.now] = len(chunk.splitlines())
                if sum(times.values()) == 3:
                    break
        assert times == {5.0: 1, 8.0: 1, 11.0: 1}, "none is lost, and none is early"
        await creating

    play(scene)


def test_a_watch_that_lags_and_breaks_loses_what_was_under_way() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.delay_events(3.0)
        watching = asyncio.create_task(line.watched())
        await line.api.clock.sleep(1)
        line.api.create(CONFIG_MAPS, config_map("a"))
        await line.api.clock.sleep(1)
        line.faults.cut_watches()
        assert await watching == ["TransportError"]

    play(scene)


def test_a_fault_befalls_only_those_it_aims_at() -> None:
    async def scene(line: FaultyLine) -> None:
        by_agent = line.faults.answer(500, agent="^other")
        by_kind = line.faults.answer(501, watch=True)
        by_choice = line.faults.answer(502, where=lambda request: request.body == b"{}")
        assert await line.status("GET", PODS) == 200
        assert await line.status("GET", PODS, agent="other/1") == 500
        assert await line.status("GET", PODS, watch="1") == 501
        assert await line.status("PATCH", f"{PODS}/p", {}, media=MERGE) == 502
        for fault in (by_agent, by_kind, by_choice):
            assert fault.hits == 1
            fault.lift()
        assert await line.status("GET", PODS, agent="other/1") == 200

    play(scene)


def test_chance_is_the_seeds() -> None:
    def struck(seed: int) -> list[bool]:
        plan = FaultPlan(random=random.Random(seed))
        plan.refuse(probability=0.3)
        return [plan.decide(Request("GET", PODS)).failure is not None for _ in range(200)]

    assert struck(1) == struck(1) != struck(2)
    assert 30 <= sum(struck(1)) <= 90


def test_a_cleared_plan_befalls_nobody() -> None:
    async def scene(line: FaultyLine) -> None:
        line.faults.refuse()
        line.faults.clear()
        assert await line.status("GET", PODS) == 200

    play(scene)
