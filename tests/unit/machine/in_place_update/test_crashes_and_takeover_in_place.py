"""An update in place is gone on with by any process, from wherever another one left it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from mcm.api.core import NODES, PODS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.client.errors import RequestTimeout
from mcm.client.requests import PatchType
from mcm.client.transport import Request
from mcm.controllers.in_place_marks import Result, Stage, marks_of
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.in_place_update.actors import (
    NEITHER,
    hand_over,
    label,
    report,
    select,
    stage_of,
)


@dataclass
class Others:
    """Node agent, set and kubelet, each doing its part whenever it sees that it is due."""

    bench: Bench
    result: str = "successful"
    worked: int = 0
    handed_over: int = 0

    async def play(self) -> None:
        while True:
            await self.bench.finish_leaving_pods()
            node, machine = await self.bench.node(), await self.bench.machine()
            marks = marks_of(node)
            if marks.stage is Stage.READY and marks.result is None:
                self.worked += 1
                await report(self.bench, self.result)
            shown = next((c for c in machine.status.conditions if c.type == "InPlaceUpdate"), None)
            if (
                marks.awaits_hand_over
                and shown is not None
                and shown.reason == "UpdateSuccessful"
                and machine.phase != "InPlaceUpdating"
            ):
                self.handed_over += 1
                await hand_over(self.bench)
            await self.bench.clock.sleep(0.5)


async def until_over(b: Bench, others: Others, *, phase: str = "Running") -> None:
    """Let all take part until the machine has come to ``phase`` and its Node to rest."""
    playing = asyncio.create_task(others.play())

    async def over() -> bool:
        marks = marks_of(await b.node())
        at_rest = not marks.candidate and marks.stage in (None, Stage.SUCCESSFUL)
        failed = marks.stage is Stage.FAILED
        return (await b.machine()).phase == phase and (at_rest or failed)

    try:
        await b.until(over, within=600)
        await b.settle()
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


async def assert_nothing_is_left(b: Bench) -> None:
    node = await b.node()
    marks = marks_of(node)
    assert not node.spec.unschedulable
    assert (marks.candidate, marks.selected, marks.result) == (False, False, None)
    assert not marks.cordon_is_ours
    assert b.driver.made == 1
    assert b.driver.count("create") == 0
    b.writes.clear()
    await b.settle(1800)
    assert b.writes == []
    assert (await b.machine()).phase == "Running"


async def go_on(b: Bench) -> None:
    await b.crash()
    await b.start()


def ending_at(b: Bench, number: int, *, arrived: bool) -> asyncio.Task[None]:
    """Have the process end at its write number ``number``, which gets through if ``arrived``."""
    ended, seen = asyncio.Event(), 0

    def count(request: Request) -> None:
        nonlocal seen
        ours = ("/machines/m", "/nodes/node-m", "/pods/app")
        if not any(path in request.path for path in ours):
            return
        seen += 1
        if seen == number:
            ended.set()
            if not arrived:
                raise RequestTimeout("lost on its way")

    async def take_over() -> None:
        await ended.wait()
        await go_on(b)

    b.transport.before_write = count
    b.faults.lose_answers(where=lambda r: arrived and seen == number and r.method != "GET", times=1)
    return asyncio.create_task(take_over())


@pytest.mark.parametrize("number", range(1, 14))
@pytest.mark.parametrize("arrived", [False, True])
def test_an_update_survives_the_end_of_the_process_at_any_write(
    number: int, *, arrived: bool
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            await b.run_pod("app")
            successor = ending_at(b, number, arrived=arrived)
            others = Others(b)
            await select(b)
            await until_over(b, others)
            await successor
            assert others.worked == 1
            assert others.handed_over == 1
            assert "app" not in pods(b)
            await assert_nothing_is_left(b)

    main()


@pytest.mark.parametrize("number", range(1, 10))
@pytest.mark.parametrize("arrived", [False, True])
def test_a_failure_and_its_calling_off_survive_it_too(number: int, *, arrived: bool) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            successor = ending_at(b, number, arrived=arrived)
            others = Others(b, result="failed")
            await select(b)
            await until_over(b, others, phase="InPlaceUpdateFailed")
            await label(b, NEITHER)
            await report(b, None)
            await until_over(b, others)
            await b.settle(5)
            if not successor.done():
                successor.cancel()
                assert number > 8, "the process did not end"
            assert others.worked == 1
            assert stage_of(await b.node()) is None
            await assert_nothing_is_left(b)

    main()


def pods(b: Bench) -> list[str]:
    return [str(p["metadata"]["name"]) for p in b.objects(PODS)]  # type: ignore[index]


# ---- taken over from the Go original -------------------------------------------------------------


@dataclass(frozen=True)
class Left:
    """What the Go original leaves behind; it cordons without saying so."""

    stage: Stage | None
    phase: str
    result: Result | None = None
    cordoned: bool = True
    operation: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.stage}-{self.phase}-{self.result}"


DRAIN_FAILED = {
    "description": "Drain failed due to - x. Will retry in next sync. Initiate node drain",
    "type": "DrainNode",
    "state": "Processing",
}
UPDATING = {
    "description": "Machine m is undergoing an in-place update",
    "type": "InPlaceUpdate",
    "state": "Processing",
}
FINISHED_WITH_SUCCESS = [
    Left(None, "Running", cordoned=False),
    Left(Stage.CANDIDATE, "Running", cordoned=False),
    Left(Stage.SELECTED, "Running", cordoned=False),
    Left(Stage.SELECTED, "Running", operation=DRAIN_FAILED),
    Left(Stage.SELECTED, "Unknown", operation=DRAIN_FAILED),
    Left(Stage.SELECTED, "InPlaceUpdating", operation=UPDATING),
    Left(Stage.DRAINED, "Running"),  # its status write failed, and it went on all the same
    Left(Stage.DRAINED, "InPlaceUpdating", operation=UPDATING),
    Left(Stage.READY, "InPlaceUpdating", operation=UPDATING),
    Left(Stage.READY, "InPlaceUpdateFailed"),  # it took too long
    Left(Stage.READY, "InPlaceUpdating", Result.SUCCESSFUL, operation=UPDATING),
    Left(Stage.SUCCESSFUL, "InPlaceUpdating", Result.SUCCESSFUL, operation=UPDATING),
    Left(Stage.SUCCESSFUL, "InPlaceUpdateSuccessful", Result.SUCCESSFUL),
    Left(Stage.SUCCESSFUL, "Running", Result.SUCCESSFUL),  # running before it was handed over
]


async def leave(b: Bench, left: Left) -> None:
    """Put machine and Node into the state, while no process of ours runs."""
    await b.make_class()
    await b.running()
    await b.crash()
    now = b.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    await select(b)
    if left.result is not None:
        await report(b, left.result)
    await b.client.patch(NODES, "node-m", {"spec": {"unschedulable": left.cordoned}})
    if left.stage is not None:
        condition = {
            "type": "InPlaceUpdate",
            "status": "True",
            "reason": left.stage.value,
            "message": "m",
            "lastTransitionTime": now,
            "lastHeartbeatTime": now,
        }
        await b.client.patch(
            NODES,
            "node-m",
            {"status": {"conditions": [condition]}},
            subresource="status",
            patch_type=PatchType.STRATEGIC,
        )
    status: JSONObject = {"currentStatus": {"phase": left.phase, "lastUpdateTime": now}}
    if left.operation:
        status["lastOperation"] = {**left.operation, "lastUpdateTime": now}
    await b.client.patch(
        MACHINES, "m", {"status": status}, namespace=NAMESPACE, subresource="status"
    )
    b.writes.clear()


@pytest.mark.parametrize("left", FINISHED_WITH_SUCCESS, ids=str)
def test_an_update_begun_by_the_go_original_is_finished(left: Left) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await leave(b, left)
            await b.start()
            others = Others(b)
            await until_over(b, others)
            assert others.worked == (1 if left.result is None else 0)
            assert others.handed_over == 1
            assert (await b.machine()).phase == "Running"
            await assert_nothing_is_left(b)

    main()


@pytest.mark.parametrize("phase", ["InPlaceUpdating", "InPlaceUpdateFailed"])
def test_a_failure_seen_by_the_go_original_is_shown_and_stays(phase: str) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await leave(b, Left(Stage.FAILED, phase, Result.FAILED))
            await b.start()
            await b.until_phase("InPlaceUpdateFailed")
            await b.settle(300)
            assert (await b.machine()).phase == "InPlaceUpdateFailed"
            assert stage_of(await b.node()) == "UpdateFailed"

    main()


@pytest.mark.parametrize("phase", ["InPlaceUpdateSuccessful", "Running"])
def test_what_the_go_original_had_handed_over_runs(phase: str) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await leave(b, Left(Stage.SUCCESSFUL, phase, Result.SUCCESSFUL))
            await hand_over(b)
            await b.start()
            await b.until_phase("Running")
            await b.settle()
            assert stage_of(await b.node()) == "UpdateSuccessful"
            await assert_nothing_is_left(b)

    main()
