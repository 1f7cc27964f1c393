"""Steps that need one another, steps that do not, and passes that end where they should."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import NODES
from mcm.api.machine import MACHINES, Machine, MachinePhase
from mcm.controllers.machine import flow
from mcm.controllers.machine.flow import NEEDS, Step, next_step, steps_of
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.objects import BORN, machine

FINALIZER = "machine.sapcloud.io/machine-controller-manager"
EVERYTHING = machine(phase="CrashLoopBackOff", node="n", claimed=False)


def taken(subject: Machine, *, failing: frozenset[Step] = frozenset()) -> list[Step]:
    """The steps of a pass in which those of ``failing`` fail and none changes the machine."""
    done: dict[Step, str] = {}
    failed: set[Step] = set()
    order: list[Step] = []
    while step := next_step(subject, has_target=True, done=done, failed=failed):
        order.append(step)
        done[step] = subject.metadata.resource_version
        if step in failing:
            failed.add(step)
    return order


@pytest.mark.parametrize(
    ("failing", "missing"),
    [
        (Step.CLAIM, {Step.DELETE_WITH_NODE, Step.SYNC_NODE, Step.CREATE}),
        (Step.VALIDATE, set()),
        (Step.DELETE_WITH_NODE, {Step.SYNC_NODE, Step.CREATE}),
        (Step.SYNC_NODE, set()),
        (Step.CHECK_HEALTH, set()),
        (Step.CREATE, set()),
    ],
)
def test_a_step_that_fails_stops_those_that_need_it_and_no_other(
    failing: Step, missing: set[Step]
) -> None:
    every = list(steps_of(EVERYTHING, has_target=True))
    expected = [step for step in every if step not in missing]
    assert taken(EVERYTHING, failing=frozenset({failing})) == expected


@given(st.sets(st.sampled_from(list(Step))), st.sampled_from([EVERYTHING, machine(deleted=BORN)]))
def test_each_step_is_taken_once_in_order_and_never_without_what_it_needs(
    failing: set[Step], subject: Machine
) -> None:
    order = taken(subject, failing=frozenset(failing))
    due = steps_of(subject, has_target=True)
    assert order == [step for step in due if step in order]
    for step in order:
        assert not NEEDS.get(step, frozenset()) & failing


def test_a_step_is_due_again_once_another_has_changed_the_machine() -> None:
    before = (Step.VALIDATE, Step.SETTLE_NODE, Step.DELETE_WITH_NODE)
    done = {Step.SYNC_NODE: "6", **dict.fromkeys(before, "7")}
    subject = machine(phase=MachinePhase.PENDING, node="n", provider_id="p")
    assert next_step(subject, has_target=True, done=done, failed=()) is Step.CHECK_HEALTH
    done[Step.CHECK_HEALTH] = "7"
    assert next_step(subject, has_target=True, done=done, failed=()) is Step.SYNC_NODE
    done[Step.SYNC_NODE] = "7"
    assert next_step(subject, has_target=True, done=done, failed=()) is Step.PRESERVE
    done[Step.PRESERVE] = done[Step.KEEP_TOKEN] = "7"
    assert next_step(subject, has_target=True, done=done, failed=()) is Step.UPDATE_VM
    done[Step.UPDATE_VM] = "7"
    assert next_step(subject, has_target=True, done=done, failed=()) is None


def test_what_a_step_needs_comes_before_it() -> None:
    order = list(flow.Step)
    for step, needs in NEEDS.items():
        assert all(order.index(need) < order.index(step) for need in needs)


async def leaving_node(b: Bench) -> None:
    """A machine without VM whose label names a Node that somebody deletes."""
    await b.make_class()
    body = {
        "metadata": {"name": "m", "finalizers": [FINALIZER], "labels": {"node": "node-m"}},
        "spec": {"class": {"kind": "MachineClass", "name": "c"}},
    }
    await b.client.create(MACHINES, body, namespace=NAMESPACE)
    status = {"status": {"currentStatus": {"phase": "CrashLoopBackOff"}}}
    await b.client.patch(MACHINES, "m", status, namespace=NAMESPACE, subresource="status")
    node = {"metadata": {"name": "node-m", "finalizers": ["somebody/holds-it"]}}
    await b.client.create(NODES, node)
    await b.client.delete(NODES, "node-m")


@on_bench
async def test_a_machine_that_goes_with_its_node_is_not_made_anew_on_the_way() -> None:
    async with bench(started=False) as b:
        await leaving_node(b)
        await b.start()
        await b.until_gone()
        assert b.driver.count("create") == 0
        assert b.events().count("NodeDeleted") == 1


async def with_unpatchable_node(b: Bench) -> None:
    """A running machine whose Node calls for a patch that always fails."""
    await b.make_class()
    await b.running()
    b.faults.answer(500, method="PATCH", path=r"/nodes/node-m$")
    template = {"metadata": {"labels": {"pool": "x"}}}
    patch = {"spec": {"nodeTemplate": template}}
    await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
    await b.settle()


@on_bench
async def test_health_is_judged_even_if_the_node_cannot_be_patched() -> None:
    async with bench() as b:
        await with_unpatchable_node(b)
        await b.set_ready("m", "False")
        assert await b.until_phase("Unknown") < 1
        await b.set_ready("m", "True")
        assert await b.until_phase("Running") < 1


@on_bench
async def test_a_health_timeout_is_not_late_because_the_node_cannot_be_patched() -> None:
    async with bench() as b:
        await with_unpatchable_node(b)
        await b.set_ready("m", "False")
        await b.until_phase("Unknown")
        assert 599 <= await b.until_phase("Failed", within=1200) <= 602
