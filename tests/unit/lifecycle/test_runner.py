"""The driver: carries the machine's actions out, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime

import pytest

from mcm.clock import LoopClock
from mcm.leaderelection import LeadershipLost
from mcm.lifecycle import GRACE_PERIOD, Components, Kind, Lifecycle, Runner, TaskName, Work
from mcm.simulation.virtualtime import run_virtual

CLOCK = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))
COMPONENTS = Components(
    mirrors=("m",), leases=("first", "second"), services=("s",), controllers=("c",)
)


def virtual(test: Callable[[], Coroutine[object, object, None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        run_virtual(test)

    return run


async def forever() -> None:
    await asyncio.Event().wait()


async def nothing() -> None: ...


class Process:
    """A life whose tasks are as good as can be, unless told otherwise; ``log`` is what happened."""

    def __init__(self, **work: Work) -> None:
        self.log: list[str] = []
        self.stop = asyncio.Event()
        self.queues = asyncio.Event()
        self.runner = Runner(
            Lifecycle(COMPONENTS),
            {task: self._logged(task, work) for kind in Kind for task in COMPONENTS.tasks(kind)},
            lead=lambda: self.log.append("lead"),
            shut_down_queues=self.queues.set,
            clock=CLOCK,
        )

    async def run(self) -> None:
        """Run it to the end, and hold it to leaving no task."""
        before = asyncio.all_tasks()
        try:
            await self.runner.run(self.stop)
        finally:
            assert asyncio.all_tasks() == before

    def _logged(self, task: TaskName, work: dict[str, Work]) -> Work:
        act = work.get(str(task).replace(" ", "_")) or self._good(task)

        async def logged() -> None:
            self.log.append(f"+{task}")
            try:
                await act()
            finally:
                self.log.append(f"-{task}")

        return logged

    def _good(self, task: TaskName) -> Work:
        async def hold() -> None:
            self.runner.lease_won(task.name)
            await forever()

        async def until_shut_down() -> None:
            await self.queues.wait()

        good: dict[Kind, Work] = {Kind.LEASE: hold, Kind.CONTROLLER: until_shut_down}
        done_at_once = (Kind.CHECKS, Kind.SYNC, Kind.RELEASE)
        return good.get(task.kind, nothing if task.kind in done_at_once else forever)


@virtual
async def test_a_life_from_the_first_check_to_the_last_release() -> None:
    process = Process()
    running = asyncio.create_task(process.run())
    await CLOCK.sleep(100)
    assert process.log[-3:] == ["lead", "+service s", "+controller c"]
    process.log.clear()
    process.stop.set()
    await running
    assert CLOCK.monotonic() == 100
    assert process.log[:2] == ["-controller c", "-service s"]
    assert sorted(process.log[2:5]) == ["-lease first", "-lease second", "-mirror m"]
    assert sorted(process.log[5:]) == sorted(
        f"{sign}release {name}" for sign in "+-" for name in ("first", "second")
    )


@virtual
async def test_a_stop_that_was_asked_for_before_is_obeyed_at_once() -> None:
    process = Process(checks=forever)
    process.stop.set()
    await process.run()
    assert CLOCK.monotonic() == 0


@virtual
async def test_what_a_task_raises_is_raised_in_the_end_out_of_its_groups() -> None:
    async def fail() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_raise(KeyError("broken")))

    with pytest.raises(KeyError, match="broken"):
        await Process(service_s=fail).run()


@virtual
async def test_a_lost_lease_is_raised_when_the_work_has_ended() -> None:
    ended: list[float] = []

    async def stubborn() -> None:
        try:
            await forever()
        finally:
            await CLOCK.sleep(3)
            ended.append(CLOCK.monotonic())

    process = Process(controller_c=stubborn)

    async def lose() -> None:
        process.runner.lease_won("first")
        await CLOCK.sleep(50)
        raise LeadershipLost("held by another")

    process = Process(controller_c=stubborn, lease_first=lambda: lose())
    with pytest.raises(LeadershipLost, match="held by another"):
        await process.run()
    assert ended == [53.0] and CLOCK.monotonic() == 53.0


@virtual
async def test_whatever_does_not_end_is_cancelled_within_the_grace_period() -> None:
    process = Process(controller_c=forever, service_s=_slow_to_end, release_first=forever)
    running = asyncio.create_task(process.run())
    await CLOCK.sleep(10)
    process.stop.set()
    await running
    assert 0.5 * GRACE_PERIOD < CLOCK.monotonic() - 10 <= GRACE_PERIOD


@virtual
async def test_cancelling_hurries_and_still_leaves_nothing_behind() -> None:
    process = Process(controller_c=_slow_to_end, release_first=forever)
    running = asyncio.create_task(process.run())
    await CLOCK.sleep(10)
    process.stop.set()
    await CLOCK.sleep(1)
    running.cancel()
    await CLOCK.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert CLOCK.monotonic() - 11 <= 1.0


@virtual
async def test_a_task_that_ignores_its_cancellation_is_named_and_left() -> None:
    async def deaf() -> None:
        while CLOCK.monotonic() < 100:
            try:
                await CLOCK.sleep(200)
            except asyncio.CancelledError:
                continue

    process = Process(service_s=deaf)
    running = asyncio.create_task(process.runner.run(process.stop))
    await CLOCK.sleep(10)
    process.stop.set()
    await running
    assert CLOCK.monotonic() == 10 + GRACE_PERIOD
    (left,) = asyncio.all_tasks() - {asyncio.current_task()}
    assert left.get_name() == "service s"
    assert not any("release" in line for line in process.log), "it might still act"
    await CLOCK.sleep(100)
    left.cancel()
    await asyncio.wait({left})


async def _raise(error: Exception) -> None:
    raise error


async def _slow_to_end() -> None:
    try:
        await forever()
    finally:
        await CLOCK.sleep(1000)
