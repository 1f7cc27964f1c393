"""That the loop turns while there are keys for thousands of reconciles that wait for nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime

import pytest

from mcm.clock import LoopClock, SystemClock
from mcm.controllers.loop_turns import LONGEST, LoopTurns
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.simulation.virtualtime import run_virtual
from mcm.workqueue import WorkQueue

REAL = SystemClock()


class CountedTime:
    """A clock that goes on only by the work that is done."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await REAL.sleep(seconds)


class Bench:
    """Controllers whose reconciles take a millisecond, and wait for nothing."""

    def __init__(self, keys: dict[str, int], *, workers: int, longest: float = LONGEST) -> None:
        self.clock = CountedTime()
        self.done: list[str] = []
        self.keys = sum(keys.values())
        turns = LoopTurns(self.clock, longest=longest)
        self.controllers = [self._controller(name, keys[name], workers, turns) for name in keys]

    def _controller(self, name: str, keys: int, workers: int, turns: LoopTurns) -> Controller:
        queue: WorkQueue[str] = WorkQueue(name, clock=self.clock)
        for number in range(keys):
            queue.add(f"{name}-{number}")
        return Controller(
            name, queue, self._reconcile, workers=workers, clock=self.clock, turns=turns
        )

    async def _reconcile(self, key: str) -> Outcome:
        self.clock.time += 0.001
        self.done.append(key.partition("-")[0])
        return DONE

    async def run(self, *, until: int) -> list[int]:
        """Work until so many keys are done; return how many were in each turn of the loop."""
        tasks = [asyncio.create_task(controller.run()) for controller in self.controllers]
        turns: list[int] = []
        before = 0
        while len(self.done) < until:
            await REAL.sleep(0)
            turns.append(len(self.done) - before)
            before = len(self.done)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return turns


def test_the_loop_turns_between_reconciles_that_wait_for_nothing() -> None:
    bench = Bench({"machine": 1000, "node": 1000}, workers=50)
    turns = asyncio.run(bench.run(until=bench.keys))
    # One begins with a moment left.
    assert max(turns) <= LONGEST / 0.001 + 1
    # What waits costs no more than another turn.
    assert len(turns) <= 3 * bench.keys / (LONGEST / 0.001)


def test_without_that_one_turn_would_have_done_all() -> None:
    bench = Bench({"machine": 1000}, workers=50, longest=1e9)
    assert max(asyncio.run(bench.run(until=bench.keys))) == 1000


@pytest.mark.parametrize("workers", [1, 7, 50])
def test_no_controller_is_kept_waiting_by_another_that_has_more_to_do(workers: int) -> None:
    names = ("machine", "node", "machineset")
    bench = Bench(dict.fromkeys(names, 10_000), workers=workers)
    rounds = 10
    asyncio.run(bench.run(until=rounds * len(names) * workers * round(LONGEST / 0.001)))
    done = Counter(bench.done)
    assert min(done[name] for name in names) >= 0.6 * max(done.values())


def test_who_was_passed_over_begins_before_whoever_came_later() -> None:
    async def main() -> None:
        clock = CountedTime()
        turns = LoopTurns(clock)
        began: list[str] = []

        async def work(name: str, times: int) -> None:
            for _ in range(times):
                await turns.begin()
                clock.time += LONGEST
                began.append(name)

        async with asyncio.TaskGroup() as group:
            group.create_task(work("greedy", 4))
            group.create_task(work("second", 1))
            group.create_task(work("third", 1))
        assert began == ["greedy", "greedy", "second", "third", "greedy", "greedy"]

    asyncio.run(main())


def test_newcomers_do_not_overtake_those_who_wait() -> None:
    async def main() -> None:
        clock = CountedTime()
        turns = LoopTurns(clock)
        began: list[str] = []

        async def work(name: str) -> None:
            await turns.begin()
            clock.time += LONGEST
            began.append(name)

        async with asyncio.TaskGroup() as group:
            for name in ("first", "waits"):
                group.create_task(work(name))
            for number in range(20):
                await REAL.sleep(0)
                group.create_task(work(f"later-{number}"))
        assert began[:2] == ["first", "waits"]
        assert len(began) == 22

    asyncio.run(main())


def test_one_who_gives_up_waiting_holds_nobody_up() -> None:
    async def main() -> None:
        clock = CountedTime()
        turns = LoopTurns(clock)

        async def work() -> None:
            await turns.begin()
            clock.time += LONGEST

        busy, *waiting = [asyncio.create_task(work()) for _ in range(4)]
        await REAL.sleep(0)
        assert busy.done()
        waiting[0].cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(*waiting[1:])
        assert waiting[0].cancelled()

    asyncio.run(main())


def test_time_that_stands_still_holds_nobody_up() -> None:
    """As under virtual time, where work takes none."""

    async def main() -> None:
        turns = LoopTurns(LoopClock(datetime(2026, 1, 1, tzinfo=UTC)))
        for _ in range(1000):
            begin = turns.begin()
            with pytest.raises(StopIteration):
                begin.send(None)

    run_virtual(main)
