"""Whole preservations against an API server, in virtual time."""

from __future__ import annotations

from datetime import datetime, timedelta

from mcm.api.core import NODES, PODS
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_PRESERVE,
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    TAINT_PRESERVED,
)
from mcm.api.timestamps import rfc3339
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench, with_settings

HEALTH_TIMEOUT = 600


async def annotate_machine(b: Bench, value: str | None, name: str = "m") -> None:
    body: JSONObject = {"metadata": {"annotations": {ANNOTATION_PRESERVE: value}}}
    await b.client.patch(MACHINES, name, body, namespace=NAMESPACE)


async def annotate_node(b: Bench, value: str | None, key: str = ANNOTATION_PRESERVE) -> None:
    body: JSONObject = {"metadata": {"annotations": {key: value}}}
    await b.client.patch(NODES, "node-m", body)


async def condition(b: Bench) -> tuple[str, str, str] | None:
    node = await b.node()
    found = (c for c in node.status.conditions if c.type == "Preserved")
    return next(((c.status, c.reason, c.message) for c in found), None)


async def taints(b: Bench) -> list[str]:
    return [taint.key for taint in (await b.node()).spec.taints]


async def expiry(b: Bench) -> datetime | None:
    return (await b.machine()).status.current_status.preserve_expiry_time


async def fail(b: Bench) -> None:
    """Let the machine fail on a kubelet that is silent."""
    await b.set_ready("m", "Unknown")
    await b.until_phase("Failed", within=HEALTH_TIMEOUT + 5)


def copies(machine: Machine) -> list[tuple[str, str]]:
    return [(c.type, c.status) for c in machine.status.conditions]


@on_bench
async def test_a_running_machine_is_kept_marked_and_let_go_to_the_second() -> None:
    async with bench(settings=with_settings(preserve_timeout=timedelta(hours=5))) as b:
        await b.make_class()
        await b.running()
        asked = b.clock.now()
        await annotate_machine(b, "now")
        await b.settle()
        until = await expiry(b)
        assert until is not None
        assert abs(until - asked - timedelta(hours=5)) <= timedelta(seconds=1)
        said = f"Machine preserved until {rfc3339(until)}."
        assert await condition(b) == ("True", "Preserved by user.", said)
        annotations = (await b.node()).metadata.annotations
        assert annotations[ANNOTATION_SCALE_DOWN_DISABLED] == "true"
        assert annotations[ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM] == "true"
        assert await taints(b) == []
        assert not (await b.node()).spec.unschedulable
        assert ("Preserved", "True") in copies(await b.machine())
        assert "Preserved" in b.events()
        # The end; the Node's annotations, its condition; the copy of that.
        assert len(b.written("machines")) == 2
        assert len(b.written("nodes")) == 2

        b.writes.clear()
        await b.clock.sleep((until - b.clock.now()).total_seconds() - 1)
        assert not b.writes
        await b.settle(1.1)
        assert await expiry(b) is None
        assert ANNOTATION_PRESERVE not in (await b.machine()).metadata.annotations
        assert await condition(b) == ("False", "Preservation stopped.", "")
        annotations = (await b.node()).metadata.annotations
        assert ANNOTATION_SCALE_DOWN_DISABLED not in annotations
        assert ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM not in annotations
        assert (await b.machine()).phase == "Running"
        assert ("Preserved", "False") in copies(await b.machine())
        assert len(b.written("machines")) == 2
        assert len(b.written("nodes")) == 2
        b.writes.clear()
        await b.clock.sleep(3600)
        assert not b.writes
        assert "PreservationEnded" in b.events()


@on_bench
async def test_when_failed_on_the_node_alone_begins_when_the_machine_fails() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p")
        await annotate_node(b, "when-failed")
        await b.settle()
        assert (await b.machine()).metadata.annotations[ANNOTATION_LAST_APPLIED_PRESERVE] == (
            "when-failed"
        )
        assert await condition(b) is None
        b.writes.clear()
        await fail(b)
        await b.settle()
        until = await expiry(b)
        assert until is not None
        assert await taints(b) == [TAINT_PRESERVED]
        assert (await b.node()).spec.taints[0].time_added is not None
        assert not (await b.node()).spec.unschedulable
        # The kubelet has been silent for so long that pods are deleted by force.
        assert not await b.exists(PODS, "p")
        said = f"Preserved node drained successfully. Machine preserved until {rfc3339(until)}."
        assert await condition(b) == ("True", "Preserved by user.", said)
        # Unknown, Failed; then the end of the preservation and the copy of the Node's condition.
        assert len(b.written("machines")) == 4
        assert len(b.written("nodes")) == 2
        b.writes.clear()
        await b.clock.sleep(7200)
        assert not b.writes


@on_bench
async def test_a_kept_machine_that_recovers_takes_pods_again_and_is_drained_anew() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "now")
        await b.settle()
        until = await expiry(b)
        await fail(b)
        await b.settle()
        assert await taints(b) == [TAINT_PRESERVED]
        assert await expiry(b) == until
        await b.set_ready("m", "True")
        await b.until_phase("Running")
        await b.settle()
        assert await taints(b) == []
        assert await expiry(b) == until
        held = await condition(b)
        assert held is not None
        assert held[2].startswith("Machine preserved until")
        await b.run_pod("p")
        await fail(b)
        await b.settle()
        assert await taints(b) == [TAINT_PRESERVED]
        assert not await b.exists(PODS, "p")
        held = await condition(b)
        assert held is not None
        assert held[2].startswith("Preserved node drained successfully.")


@on_bench
async def test_when_failed_ends_with_the_recovery_and_stays_asked_for() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "when-failed")
        await fail(b)
        await b.settle()
        assert await expiry(b) is not None
        await b.set_ready("m", "True")
        await b.until_phase("Running")
        await b.settle()
        assert await expiry(b) is None
        assert await taints(b) == []
        assert (await b.machine()).metadata.annotations[ANNOTATION_PRESERVE] == "when-failed"
        assert await condition(b) == ("False", "Preservation stopped.", "")
        await fail(b)
        await b.settle()
        assert await expiry(b) is not None
        assert await taints(b) == [TAINT_PRESERVED]


@on_bench
async def test_auto_preserved_goes_with_the_recovery() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await fail(b)
        await annotate_machine(b, "auto-preserved")
        await b.settle()
        held = await condition(b)
        assert held is not None
        assert held[1] == "Preserved by MCM."
        await b.set_ready("m", "True")
        await b.until_phase("Running")
        await b.settle()
        assert ANNOTATION_PRESERVE not in (await b.machine()).metadata.annotations
        assert await expiry(b) is None
        assert await taints(b) == []


@on_bench
async def test_taking_the_annotation_off_the_node_ends_it() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "when-failed")
        await annotate_node(b, "now")
        await b.settle()
        annotations = (await b.machine()).metadata.annotations
        assert annotations[ANNOTATION_LAST_APPLIED_PRESERVE] == "now"
        assert ANNOTATION_PRESERVE not in annotations
        assert await expiry(b) is not None
        await annotate_node(b, None)
        await b.settle()
        assert await expiry(b) is None
        assert ANNOTATION_LAST_APPLIED_PRESERVE not in (await b.machine()).metadata.annotations
        # From here on the machine's own word counts again.
        await annotate_machine(b, "now")
        await b.settle()
        assert await expiry(b) is not None


@on_bench
async def test_the_users_own_cordon_and_word_to_the_autoscaler_stay() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.client.patch(NODES, "node-m", {"spec": {"unschedulable": True}})
        await annotate_node(b, "true", ANNOTATION_SCALE_DOWN_DISABLED)
        await annotate_machine(b, "now")
        await fail(b)
        await b.settle()
        node = await b.node()
        assert ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM not in node.metadata.annotations
        await annotate_machine(b, "false")
        await b.settle()
        node = await b.node()
        assert await expiry(b) is None
        assert node.spec.unschedulable
        assert node.metadata.annotations[ANNOTATION_SCALE_DOWN_DISABLED] == "true"
        assert TAINT_PRESERVED not in await taints(b)


@on_bench
async def test_minds_that_change_quickly_end_as_the_last_word_says() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        for value in ("now", "false", "now", "when-failed", "now", "false"):
            await annotate_machine(b, value)
        await b.settle()
        assert await expiry(b) is None
        for word in ("now", None, "false", "now"):
            await annotate_node(b, word)
        await b.settle()
        assert await expiry(b) is not None
        held = await condition(b)
        assert held is not None
        assert held[0] == "True"


@on_bench
async def test_an_end_that_somebody_moves_is_obeyed() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "now")
        await b.settle()
        sooner = rfc3339(b.clock.now() + timedelta(minutes=30))
        body: JSONObject = {"status": {"currentStatus": {"preserveExpiryTime": sooner}}}
        await b.client.patch(MACHINES, "m", body, namespace=NAMESPACE, subresource="status")
        await b.settle()
        held = await condition(b)
        assert held is not None
        assert held[2] == f"Machine preserved until {sooner}."
        await b.clock.sleep(30 * 60)
        assert await expiry(b) is None


@on_bench
async def test_a_value_that_cannot_be_read_is_told_once_and_where() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await annotate_node(b, "forever")
        await b.settle()
        wrong = find_own((await b.machine()).status, OwnCondition.PRESERVATION_APPLIED)
        assert wrong is not None
        assert (wrong.status, wrong.reason) == ("False", "InvalidAnnotation")
        assert "'forever' on node node-m is none of auto-preserved, false, now" in wrong.message
        assert b.events().count("InvalidAnnotation") == 1
        b.writes.clear()
        await b.clock.sleep(3600)
        assert not b.writes
        await annotate_node(b, "now")
        await b.settle()
        status = (await b.machine()).status
        assert find_own(status, OwnCondition.PRESERVATION_APPLIED) is None
        assert await expiry(b) is not None
        assert len(b.written("machines")) == 3


@on_bench
async def test_a_drain_that_a_budget_holds_back_is_said_so_and_goes_on() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p", labels={"app": "a"})
        await b.make_budget("b", labels={"app": "a"}, allowed=0)
        await fail_soon(b)
        await annotate_machine(b, "now")
        await b.until_phase("Failed", within=HEALTH_TIMEOUT)
        await b.settle(60)
        assert await b.exists(PODS, "p")
        assert await taints(b) == [TAINT_PRESERVED]
        said = find_own((await b.machine()).status, OwnCondition.DRAINED)
        assert said is not None and "disruption budget: default/p since" in said.message
        await b.allow("b", 1)
        await b.settle(5)
        assert await b.finish_leaving_pods() == ["p"]
        await b.settle()
        held = await condition(b)
        assert held is not None
        assert held[2].startswith("Preserved node drained successfully.")
        status = (await b.machine()).status
        assert find_own(status, OwnCondition.PRESERVATION_APPLIED) is None
        assert find_own(status, OwnCondition.DRAINED) is None


@on_bench
async def test_a_machine_that_recovers_in_the_middle_of_its_drain_says_nothing_of_it() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.run_pod("p", labels={"app": "a"})
        await b.make_budget("b", labels={"app": "a"}, allowed=0)
        await fail_soon(b)
        await annotate_machine(b, "now")
        await b.until_phase("Failed", within=HEALTH_TIMEOUT)
        await b.settle(60)
        assert find_own((await b.machine()).status, OwnCondition.DRAINED) is not None
        await b.set_ready("m", "True")
        await b.until_phase("Running")
        await b.settle()
        assert find_own((await b.machine()).status, OwnCondition.DRAINED) is None
        b.writes.clear()
        await b.settle(600)
        assert not b.writes


async def fail_soon(b: Bench) -> None:
    """Let the machine fail within the five minutes in which a kubelet may come back."""
    body: JSONObject = {"spec": {"healthTimeout": "1m0s"}}
    await b.client.patch(MACHINES, "m", body, namespace=NAMESPACE)
    await b.set_ready("m", "False")


@on_bench
async def test_deletion_is_not_held_up() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await annotate_machine(b, "now")
        await b.settle()
        await b.delete_machine()
        await b.until_gone(within=10)
        assert not await b.exists(NODES, "node-m")
        assert not b.driver.vms


@on_bench
async def test_a_machine_without_a_node_is_kept_by_its_own_word() -> None:
    async with bench(settings=with_settings(creation_timeout=timedelta(minutes=5))) as b:
        await b.make_class()
        await b.make_machine()
        await annotate_machine(b, "when-failed")
        await b.until_phase("Failed", within=400)
        await b.settle()
        until = await expiry(b)
        assert until is not None
        b.writes.clear()
        await b.clock.sleep(3600)
        assert not b.writes
        await annotate_machine(b, None)
        await b.settle()
        assert await expiry(b) is None
        assert (await b.machine()).phase == "Failed"
