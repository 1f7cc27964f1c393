"""An update in place as those who take part see it: set, people, node agent, and the machine."""

from __future__ import annotations

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.controllers.machine.node.in_place_marks import Stage
from tests.unit.machine.bench import Bench, bench, on_bench
from tests.unit.machine.in_place_update.actors import (
    CANDIDATE,
    SELECTED,
    hand_over,
    label,
    phases_written,
    report,
    select,
    stages_written,
    until_stage,
)

ALL_STAGES = [
    "CandidateForUpdate",
    "SelectedForUpdate",
    "DrainSuccessful",
    "ReadyForUpdate",
    "UpdateSuccessful",
]
OURS = "node.machine.sapcloud.io/cordoned-by-mcm"


async def description(b: Bench) -> str:
    return (await b.machine()).status.last_operation.description


def gets(b: Bench) -> int:
    """How often a Node or a machine was read; probes, which ask for what is not there, aside."""
    count, kinds = b.server.requests.total, (NODES.name, MACHINES.name)
    return sum(count(verb="get", resource=kind, agent="mcm", code=200) for kind in kinds)


async def cordon(b: Bench, *, on: bool = True) -> None:
    await b.client.patch(NODES, "node-m", {"spec": {"unschedulable": on}})


async def ready_for_update(b: Bench) -> None:
    await b.make_class()
    await b.running()
    await select(b)
    await until_stage(b, Stage.READY)


@on_bench
async def test_an_update_goes_through_all_steps_and_ends_in_running() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("app")
        await b.run_pod("agent", owner="DaemonSet")
        await label(b, CANDIDATE)
        await until_stage(b, Stage.CANDIDATE)
        await b.settle(600)
        assert not (await b.node()).spec.unschedulable
        await label(b, SELECTED)
        await until_stage(b, Stage.SELECTED)
        await b.settle()
        node = await b.node()
        assert node.spec.unschedulable
        assert node.metadata.annotations[OURS] == "in-place-update"
        assert (await b.machine()).phase == "Running"
        assert (await b.pod("app")).metadata.deletion_timestamp is not None
        assert (await b.pod("agent")).metadata.deletion_timestamp is None
        await b.finish_leaving_pods()
        assert await until_stage(b, Stage.READY) < 1.0
        machine = await b.machine()
        assert machine.phase == "InPlaceUpdating"
        last = machine.status.last_operation
        assert (last.description, last.state, last.type) == (
            "Machine m is undergoing an in-place update",
            "Processing",
            "InPlaceUpdate",
        )
        await report(b, "successful")
        assert await b.until_phase("InPlaceUpdateSuccessful") < 1.0
        machine = await b.machine()
        last = machine.status.last_operation
        assert (last.description, last.state, last.type) == (
            "Machine m successfully updated dependencies",
            "Successful",
            "InPlaceUpdate",
        )
        copied = next(c for c in machine.status.conditions if c.type == "InPlaceUpdate")
        assert (copied.status, copied.reason) == ("True", "UpdateSuccessful")
        await hand_over(b)
        assert await b.until_phase("Running") < 1.0
        await b.settle()
        node = await b.node()
        assert not node.spec.unschedulable
        assert OURS not in node.metadata.annotations
        assert stages_written(b) == ALL_STAGES
        assert phases_written(b) == ["InPlaceUpdating", "InPlaceUpdateSuccessful", "Running"]


@on_bench
async def test_what_an_update_costs_and_that_nothing_of_ours_is_read() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("app")
        read = gets(b)
        await label(b, CANDIDATE)
        await b.settle(30)
        await label(b, SELECTED)
        await b.settle(30)
        await b.finish_leaving_pods()
        await b.settle(30)
        await report(b, "successful")
        await b.settle(30)
        await hand_over(b)
        await b.settle(30)
        assert (await b.machine()).phase == "Running"
        assert len(b.written("machines", "m")) == 6
        on_node = b.written("nodes", "node-m")
        assert len([w for w in on_node if w.path.endswith("/status")]) == 5
        assert len([w for w in on_node if not w.path.endswith("/status")]) == 2
        assert gets(b) == read
        b.writes.clear()
        await b.settle(3600)
        assert b.writes == []
