"""Whatever stands on a machine of ours, the Go original could go on from it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import wraps
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.codec import decode_object
from mcm.api.core import NODES, Node, NodeCondition, NodeStatus
from mcm.api.machine import MACHINES, LastOperation, Machine, MachinePhase
from mcm.api.meta import JSONObject, ObjectMeta, Resource, T
from mcm.controllers.in_place_marks import Stage
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion.steps import DeletionStep, step_of
from mcm.driver import Code
from tests.unit.machine.bench import Bench, bench, on_bench, with_settings
from tests.unit.machine.deletion.test_steps import WRITTEN
from tests.unit.machine.in_place_update import actors as in_place
from tests.unit.machine.objects import BORN, machine
from tests.unit.machine.preservation.test_crashes_and_takeover import (
    kept_as_it_fails,
    kept_until_it_recovers,
    kept_until_its_time_is_over,
    kept_while_it_runs,
)
from tests.unit.machine.takeover import go_original

STEPS = list(DeletionStep)
TEMPLATE: JSONObject = {
    "metadata": {"labels": {"pool": "p"}, "annotations": {"note": 'says "so"'}},
    "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
}
LONG = "é[x] " * 10_000


def number_of(step: DeletionStep) -> int:
    return STEPS.index(step) + 1


def terminating(text: str) -> Machine:
    operation = LastOperation(description=text)
    return machine(phase=MachinePhase.TERMINATING, operation=operation, deleted=BORN)


@pytest.mark.parametrize(("operation", "step"), WRITTEN)
def test_each_text_of_a_deletion_names_the_same_step_to_both(
    operation: LastOperation, step: DeletionStep
) -> None:
    assert go_original.step_of(terminating(operation.description)) == number_of(step)


quoted = st.lists(st.sampled_from([*go_original.DELETION_MARKERS, "no luck"]), max_size=4).map(
    "; ".join
)
FAILED = [
    last_operation.drain_failed,
    last_operation.node_conditions_failed,
    last_operation.drain_failed_but_forced,
    last_operation.detach_failed,
    last_operation.vm_deletion_retry,
    last_operation.vm_deletion_aborted,
    last_operation.vm_deletion_blocked,
]


@given(failed=st.sampled_from(FAILED), error=quoted)
def test_an_error_that_quotes_markers_makes_it_repeat_steps_and_leave_none_out(
    failed: Callable[[str], LastOperation], error: str
) -> None:
    said = terminating(failed(error).description)
    theirs = go_original.step_of(said)
    assert theirs is not None
    assert theirs <= number_of(step_of(said))


def test_no_condition_of_ours_is_one_that_it_judges_or_steers_by() -> None:
    assert not go_original.mistakable()


@pytest.mark.parametrize(
    ("kind", "status", "reason", "message"),
    [
        ("InPlaceUpdate", "True", "Unheard", ""),
        ("InPlaceUpdate", "False", "ReadyForUpdate", ""),
        ("Preserved", "True", "Preserved by user.", "for ever"),
        ("Preserved", "True", "Kept", "Machine preserved until 2026"),
        ("Terminating", "False", "ScaleDown", ""),
    ],
)
def test_a_condition_that_it_would_not_know_is_noticed(
    kind: str, status: str, reason: str, message: str
) -> None:
    said = NodeCondition(type=kind, status=status, reason=reason, message=message)
    found = go_original.misread_node(
        Node(metadata=ObjectMeta(name="n"), status=NodeStatus(conditions=(said,)))
    )
    assert len(found) == 1


# ---- lives ---------------------------------------------------------------------------------------

Life: TypeAlias = Callable[[Bench], Coroutine[object, object, None]]


async def made_with_trouble(b: Bench) -> None:
    b.driver.needs_initialization = True
    b.driver.fail("create", Code.RESOURCE_EXHAUSTED, LONG)
    b.driver.fail("create", Code.INTERNAL, "Initiate VM deletion")
    b.driver.fail("initialize", Code.INTERNAL)
    await b.make_machine(spec={"nodeTemplate": TEMPLATE})
    await b.until_phase("Pending", within=900)
    await b.join(ready="False")
    await b.settle(5)
    await b.set_ready("m", "True")
    await b.until_phase("Running")


async def given_up(b: Bench) -> None:
    await b.running(spec={"nodeTemplate": TEMPLATE})
    await b.set_ready("m", "Unknown")
    await b.until_phase("Failed", within=60)


async def without_a_node(b: Bench) -> None:
    await b.running()
    await b.client.patch(NODES, "node-m", {"metadata": {"finalizers": None}})
    await b.client.delete(NODES, "node-m")
    await b.settle(5)


async def failing_to_go(b: Bench) -> None:
    await b.running(spec={"nodeTemplate": TEMPLATE})
    await b.run_pod("p")
    b.driver.fail("delete", Code.INTERNAL, LONG)
    b.driver.fail("delete", Code.UNAVAILABLE, "Initiate node drain")
    b.driver.fail("delete", Code.INTERNAL, "] [ [")
    await b.delete_machine()
    await b.settle(5)
    await b.finish_leaving_pods()
    await b.until_gone(within=900)


async def with_a_template_that_cannot_be_applied(b: Bench) -> None:
    await b.running(
        spec={"nodeTemplate": {"metadata": {"labels": {"not a key": "x"}, "annotations": {}}}}
    )
    await b.settle(60)


def once_it_runs(life: Life) -> Life:
    @wraps(life)
    async def whole(b: Bench) -> None:
        await b.running(spec={"nodeTemplate": TEMPLATE})
        await life(b)

    return whole


async def updated_in_place(b: Bench) -> None:
    await b.running()
    await b.run_pod("p")
    await in_place.select(b)
    await b.settle(5)
    await b.finish_leaving_pods()
    await in_place.until_stage(b, Stage.READY)
    await in_place.report(b, "successful")
    await b.settle(30)
    await in_place.hand_over(b)
    await b.settle(30)


async def failing_to_be_updated(b: Bench) -> None:
    await b.running()
    await in_place.select(b)
    await in_place.until_stage(b, Stage.READY)
    await in_place.report(b, "failed", reason="says: Initiate VM deletion")
    await b.settle(30)


async def held_up_by_a_budget(b: Bench) -> None:
    await b.running()
    await b.run_pod("p", labels={"app": "web"})
    await b.make_budget("web", labels={"app": "web"}, allowed=0)
    await b.delete_machine()
    await b.settle(900)
    await b.allow("web", 1)
    await b.settle(60)
    await b.finish_leaving_pods()


@pytest.mark.parametrize(
    "life",
    [
        updated_in_place,
        failing_to_be_updated,
        held_up_by_a_budget,
        once_it_runs(kept_while_it_runs),
        once_it_runs(kept_as_it_fails),
        once_it_runs(kept_until_its_time_is_over),
        once_it_runs(kept_until_it_recovers),
        made_with_trouble,
        given_up,
        without_a_node,
        failing_to_go,
        with_a_template_that_cannot_be_applied,
    ],
    ids=lambda life: life.__name__,
)
def test_no_write_of_a_life_is_misread(life: Life) -> None:
    @on_bench
    async def main() -> None:
        settings = with_settings(
            health_timeout=timedelta(seconds=10), preserve_timeout=timedelta(minutes=5)
        )
        async with bench(settings=settings) as b:
            found: list[str] = []
            kinds: set[int] = set()
            told: list[str] = []

            def look(subject: Machine) -> None:
                told.append(subject.phase)
                found.extend(go_original.misread(subject))
                step = go_original.step_of(subject)
                if subject.phase == "Terminating" and step is not None:
                    kinds.add(step)
                    assert step <= number_of(step_of(subject))

            on_each(b, MACHINES, look)
            on_each(b, NODES, lambda node: found.extend(go_original.misread_node(node)))
            await b.make_class()
            b.driver.latency = 2.0  # what takes no time leaves nothing to be misread
            await life(b)
            if await b.exists(MACHINES, "m"):
                await b.delete_machine()
                await b.settle(5)
                await b.until_gone(within=120)
            assert found == []
            assert {3, 5, 6} & kinds
            assert told, "each life writes"

    main()


def on_each(b: Bench, resource: Resource[T], look: Callable[[T], None]) -> None:
    """Call ``look`` with each state that an object comes to."""
    storage = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    b.server.store.subscribe(lambda c: look(decode_object(resource, c.stored.encoded)), storage)
