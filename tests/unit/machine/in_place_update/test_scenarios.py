"""An update in place as those who take part see it: set, people, node agent, and the machine."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from mcm.api.core import NODES, PODS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_DRAIN_RECORD
from mcm.client.transport import Request
from mcm.controllers.in_place_marks import Stage
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from tests.unit.machine.bench import Bench, bench, on_bench, with_settings
from tests.unit.machine.in_place_update.actors import (
    BOTH,
    CANDIDATE,
    NEITHER,
    SELECTED,
    hand_over,
    label,
    phases_written,
    report,
    select,
    stage_of,
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


async def says_drained(b: Bench) -> bool:
    """Whether the machine says anything of a drain."""
    return find_own((await b.machine()).status, OwnCondition.DRAINED) is not None


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
        assert len(b.written("machines", "m")) == 7  # one of them: that the drain takes long
        on_node = b.written("nodes", "node-m")
        assert len([w for w in on_node if w.path.endswith("/status")]) == 5
        assert len([w for w in on_node if not w.path.endswith("/status")]) == 2
        assert gets(b) == read
        b.writes.clear()
        await b.settle(3600)
        assert b.writes == []


# ---- calling it off ----------------------------------------------------------------------------


@pytest.mark.parametrize("left", [CANDIDATE, {}])
@pytest.mark.parametrize("stage", [Stage.SELECTED, Stage.READY])
def test_labels_removed_midway_call_the_update_off(
    stage: Stage, left: dict[str, str | None]
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.running()
            if stage is Stage.SELECTED:
                await b.run_pod("app", labels={"app": "a"})
                await b.make_budget("b", labels={"app": "a"}, allowed=0)
            await select(b)
            await until_stage(b, stage)
            await b.settle()
            assert (await b.node()).spec.unschedulable
            record = ANNOTATION_DRAIN_RECORD in (await b.machine()).metadata.annotations
            assert record == (stage is Stage.SELECTED)
            await b.settle(15)
            assert await says_drained(b) == (stage is Stage.SELECTED)
            await label(b, NEITHER | left)
            await until_stage(b, Stage.CANDIDATE if left else None)
            await b.until_phase("Running")
            await b.settle()
            assert ANNOTATION_DRAIN_RECORD not in (await b.machine()).metadata.annotations
            assert not await says_drained(b)
            node = await b.node()
            assert not node.spec.unschedulable
            assert OURS not in node.metadata.annotations
            assert "InPlaceUpdateWithdrawn" in b.events()
            assert await description(b) == (
                "Machine m is no longer selected for an in-place update"
            )
            b.writes.clear()
            await b.settle(1800)
            assert b.writes == []
            await select(b)
            await until_stage(b, stage)

    main()


@on_bench
async def test_a_users_own_cordon_outlives_an_update_that_is_called_off() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await cordon(b)
        await select(b)
        await until_stage(b, Stage.READY)
        await label(b, NEITHER)
        await b.until_phase("Running")
        await b.settle()
        assert (await b.node()).spec.unschedulable


@on_bench
async def test_labels_that_go_just_before_a_write_are_not_overtaken_by_it() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        races: list[asyncio.Future[None]] = []

        def lose(request: Request) -> None:
            if b"DrainSuccessful" in (request.body or b"") and not races:
                races.append(asyncio.ensure_future(label(b, NEITHER)))

        b.transport.before_write = lose
        b.faults.delay(1.0, where=lambda r: b"DrainSuccessful" in (r.body or b""), times=1)
        await select(b)
        await b.settle(5)
        await asyncio.gather(*races)
        assert races
        await b.until_phase("Running")
        await b.settle()
        assert stage_of(await b.node()) is None
        assert stages_written(b) == ["CandidateForUpdate", "SelectedForUpdate", None]
        assert not (await b.node()).spec.unschedulable


# ---- failures ----------------------------------------------------------------------------------


@on_bench
async def test_a_failure_is_shown_with_the_agents_words() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await report(b, "failed", reason="no space left on device")
        assert await b.until_phase("InPlaceUpdateFailed") < 1
        machine = await b.machine()
        last = machine.status.last_operation
        assert (last.description, last.state, last.type) == (
            "Machine m failed to update dependencies: no space left on device",
            "Failed",
            "InPlaceUpdate",
        )
        copied = next(c for c in machine.status.conditions if c.type == "InPlaceUpdate")
        assert copied.message == "Node in-place update failed: no space left on device"
        assert copied.reason == "UpdateFailed"
        assert "InPlaceUpdateFailed" in b.events()
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")
        await hand_over(b)
        await b.until_phase("Running")


@on_bench
async def test_a_failed_update_is_tried_again_once_its_result_is_removed() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await report(b, "failed", reason="x")
        await b.until_phase("InPlaceUpdateFailed")
        await b.settle()
        b.writes.clear()
        await b.run_pod("late")
        await report(b, None)
        await until_stage(b, Stage.SELECTED)
        await b.settle(1200)  # longer than health timeout: a drain is no failure
        assert (await b.machine()).phase == "Running"
        await b.finish_leaving_pods()
        await until_stage(b, Stage.READY)
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")
        assert stages_written(b) == ALL_STAGES


@on_bench
async def test_an_update_that_takes_too_long_fails_to_the_second_and_may_still_succeed() -> None:
    async with bench(settings=with_settings(inplace_update_timeout=timedelta(minutes=7))) as b:
        await ready_for_update(b)
        assert 419 <= await b.until_phase("InPlaceUpdateFailed", within=600) <= 421
        assert await description(b) == "Machine m failed to in-place update in 7m0s."
        assert stage_of(await b.node()) == "ReadyForUpdate"
        await b.settle(60)
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")


@on_bench
async def test_a_machines_own_timeout_wins_and_survives_a_restart() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running(spec={"inPlaceUpdateTimeout": "3m"})
        await select(b)
        await until_stage(b, Stage.READY)
        await b.settle(100)
        await b.crash()
        await b.settle(30)
        await b.start()
        assert 48 <= await b.until_phase("InPlaceUpdateFailed", within=600) <= 51


@on_bench
async def test_a_failed_update_that_nobody_mends_makes_the_machine_failed() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await report(b, "failed")
        await b.until_phase("InPlaceUpdateFailed")
        assert 599 <= await b.until_phase("Failed", within=1200) <= 602
        await b.settle(600)
        assert (await b.machine()).phase == "Failed"
        await label(b, NEITHER)
        await b.until_phase("Running")
        assert not (await b.node()).spec.unschedulable


@on_bench
async def test_the_agents_success_counts_even_after_the_machine_was_given_up() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await b.until_phase("Failed", within=2000)
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")


@on_bench
async def test_nothing_is_written_on_the_node_before_the_machine_shows_it() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        fault = b.faults.answer(500, method="PATCH", path=r"/machines/m/status$")
        await select(b)
        await b.settle(60)
        assert stage_of(await b.node()) == "SelectedForUpdate"
        fault.lift()
        await until_stage(b, Stage.READY, within=120)
        assert (await b.machine()).phase == "InPlaceUpdating"


@on_bench
async def test_a_node_that_cannot_be_written_is_told_of_on_the_machine() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        fault = b.faults.answer(403, method="PATCH", path=r"/nodes/node-m/status$")
        await select(b)
        await b.settle(30)
        assert "InPlaceUpdateBlocked" in b.events()
        await b.set_ready("m", "False")
        await b.until_phase("Unknown")  # health is judged all the same
        await b.set_ready("m", "True")
        fault.lift()
        await until_stage(b, Stage.READY, within=120)


@on_bench
async def test_a_result_from_before_is_not_taken_for_the_answer() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await report(b, "successful", reason="old")
        await select(b)
        await until_stage(b, Stage.READY)
        await b.settle(60)
        assert (await b.machine()).phase == "InPlaceUpdating"
        assert "UpdateSuccessful" not in stages_written(b)
        assert "OldUpdateResultRemoved" in b.events()
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")


# ---- the drain ---------------------------------------------------------------------------------


@on_bench
async def test_a_pod_that_cannot_go_is_named_and_let_go_when_its_budget_allows() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("app", labels={"app": "a"})
        await b.make_budget("strict", labels={"app": "a"}, allowed=0)
        await b.settle()
        await select(b)
        await until_stage(b, Stage.SELECTED)
        await b.settle()
        last = (await b.machine()).status.last_operation
        assert last.type == "DrainNode"
        assert last.state == "Processing"
        assert "default/strict is misconfigured and requires zero voluntary" in last.description
        assert last.description.startswith("Drain failed due to - pod default/app: ")
        assert last.description.endswith("Will retry in next sync. Initiate node drain")
        assert "DrainBlocked" in b.events()
        assert (await b.machine()).phase == "Running"
        await b.allow("strict", 1)
        await b.settle()
        assert await b.finish_leaving_pods() == ["app"]
        assert await until_stage(b, Stage.READY) < 1


async def held_back(b: Bench, *, spec: JSONObject | None = None) -> None:
    await b.make_class()
    await b.running(spec=spec)
    await b.run_pod("app", labels={"app": "a"})
    await b.make_budget("strict", labels={"app": "a"}, allowed=0)
    await b.settle(3600)  # the time of the drain has not begun
    await select(b)
    await until_stage(b, Stage.SELECTED)


@on_bench
async def test_the_drains_time_counts_from_the_selection() -> None:
    async with bench() as b:
        await held_back(b, spec={"drainTimeout": "10m"})
        assert 599 <= await until_stage(b, Stage.READY, within=900) <= 602
        assert not await b.exists(PODS, "app") or (
            (await b.pod("app")).metadata.deletion_timestamp is not None
        )


@on_bench
async def test_only_the_exact_label_forces_the_drain() -> None:
    async with bench() as b:
        await held_back(b)
        await b.label_machine("m", "force-deletion", "true")
        await b.label_machine("m", "force-drain", "true")
        await b.settle(60)
        assert stage_of(await b.node()) == "SelectedForUpdate"
        await b.label_machine("m", "force-drain", "True")
        assert await until_stage(b, Stage.READY) < 1
        assert "ForceDrained" in b.events()


@on_bench
async def test_a_drain_goes_on_after_a_restart() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("app")
        await select(b)
        await until_stage(b, Stage.SELECTED)
        await b.settle()
        await b.crash()
        await b.start()
        await b.settle()
        await b.finish_leaving_pods()
        assert await until_stage(b, Stage.READY) < 1


# ---- health, hand-over, ends -------------------------------------------------------------------


@on_bench
async def test_health_concludes_nothing_while_the_agent_works() -> None:
    async with bench() as b:
        await ready_for_update(b)
        for readiness in ("False", "Unknown", "True", "False"):
            await b.set_ready("m", readiness)
            await b.settle(120)
            assert (await b.machine()).phase == "InPlaceUpdating"
        copied = next(c for c in (await b.machine()).status.conditions if c.type == "Ready")
        assert copied.status == "False"
        await report(b, "successful")
        await b.until_phase("Unknown")  # its Node is not well
        await b.settle(30)
        await b.set_ready("m", "True")
        await b.until_phase("InPlaceUpdateSuccessful")
        await hand_over(b)
        await b.until_phase("Running")


@on_bench
async def test_an_updated_machine_waits_for_its_new_set_however_long() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")
        await b.settle()
        b.writes.clear()
        await b.settle(6 * 3600)
        await label(b, NEITHER)  # not yet all of it
        await b.settle(60)
        assert (await b.machine()).phase == "InPlaceUpdateSuccessful"
        assert b.writes == []
        await report(b, None)
        await b.until_phase("Running")
        assert not (await b.node()).spec.unschedulable


@on_bench
async def test_the_next_update_begins_where_the_last_one_ended() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")
        await hand_over(b)
        await b.until_phase("Running")
        await b.settle()
        b.writes.clear()
        await select(b)
        await until_stage(b, Stage.READY)
        assert (await b.machine()).phase == "InPlaceUpdating"
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")
        assert stages_written(b) == ALL_STAGES


@pytest.mark.parametrize("stage", [s for s in Stage if s is not Stage.DRAINED])
def test_a_machine_deleted_midway_goes_like_any_other(stage: Stage) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await reach(b, stage)
            await b.delete_machine()
            await b.settle()
            await b.finish_leaving_pods()
            await b.until_gone(within=5)
            assert not b.driver.vms
            assert not await b.exists(NODES, "node-m")

    main()


@on_bench
async def test_a_machine_whose_node_vanishes_midway_is_replaced_by_whoever_owns_it() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await b.client.delete(NODES, "node-m")
        await b.until_gone(within=10)
        assert not b.driver.vms


@on_bench
async def test_a_node_that_vanished_while_nobody_looked_ends_by_the_clocks() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await b.crash()
        finalizers: JSONObject = {"metadata": {"finalizers": []}}
        await b.client.patch(NODES, "node-m", finalizers)
        await b.client.delete(NODES, "node-m")
        await b.start()
        assert 1195 <= await b.until_phase("InPlaceUpdateFailed", within=1500) <= 1202
        assert 599 <= await b.until_phase("Failed", within=900) <= 602


@on_bench
async def test_a_node_registered_anew_midway_starts_over() -> None:
    async with bench() as b:
        await ready_for_update(b)
        await b.crash()
        finalizers: JSONObject = {"metadata": {"finalizers": []}}
        await b.client.patch(NODES, "node-m", finalizers)
        await b.client.delete(NODES, "node-m")
        await b.join()
        await b.start()
        await b.until_phase("Running")
        await select(b)
        await until_stage(b, Stage.READY)
        assert (await b.machine()).phase == "InPlaceUpdating"


@on_bench
async def test_a_machine_that_joins_or_failed_is_not_updated() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        await b.join(ready="False")
        await select(b)
        await b.settle(60)
        assert stage_of(await b.node()) is None
        assert not (await b.node()).spec.unschedulable
        await b.set_ready("m", "True")
        await until_stage(b, Stage.READY)


@on_bench
async def test_servers_out_of_reach_do_not_fail_an_update() -> None:
    async with bench() as b:
        await ready_for_update(b)
        with b.unreachable():
            await b.settle(3600)
        await b.settle(600)
        assert (await b.machine()).phase == "InPlaceUpdating"
        await report(b, "successful")
        await b.until_phase("InPlaceUpdateSuccessful")


async def reach(b: Bench, stage: Stage) -> None:
    """Bring the machine ``m`` to a step, and a pod that leaves when asked."""
    await b.make_class()
    await b.running()
    if stage is Stage.SELECTED:
        await b.run_pod("app")
    await label(b, CANDIDATE if stage is Stage.CANDIDATE else BOTH)
    if stage in (Stage.SUCCESSFUL, Stage.FAILED):
        await until_stage(b, Stage.READY)
        await report(b, "successful" if stage is Stage.SUCCESSFUL else "failed")
    await until_stage(b, stage)
    await b.settle()
