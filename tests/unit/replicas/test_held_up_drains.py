"""What sets and deployments say of drains that do not go on."""

from __future__ import annotations

import msgspec
import pytest

from mcm.api.core import NodeCondition
from mcm.api.machine import Machine, MachineSetStatus
from mcm.controllers.conditions import find
from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.status.status import status_after
from mcm.controllers.machineset.status import status_of
from mcm.controllers.replicas.held_up_drains import held_up_drains, why_held_up
from tests.unit.deployment.objects import NOW, deployment, owned_set
from tests.unit.machineset.objects import ago, machine, machine_set

HELD = "held by a misconfigured disruption budget: shop/a"
MESSAGE = f"{HELD}; leaving: shop/b; pods are deleted by force at 2026-01-01T14:00:00Z"


def draining(
    name: str, reason: str = "Blocked", *, status: str = "False", message: str = MESSAGE
) -> Machine:
    made = machine(name, deleted=True)
    condition = NodeCondition(
        type="Drained",
        status=status,
        reason=reason,
        message=message,
        last_transition_time=ago(300),
    )
    conditions = (NodeCondition(type="Ready", status="True"), condition)
    return msgspec.structs.replace(
        made, status=msgspec.structs.replace(made.status, conditions=conditions)
    )


@pytest.mark.parametrize(
    ("reason", "status", "held_up"),
    [
        ("Blocked", "False", True),
        ("Blocked", "True", False),
        ("Draining", "False", False),
        ("CannotObserve", "False", False),
        ("Overdue", "False", False),
        ("Forced", "False", False),
    ],
)
def test_which_drains_are_held_up(reason: str, status: str, held_up: bool) -> None:
    found = held_up_drains([machine("x"), draining("m", reason, status=status)])
    assert [m.metadata.name for m in found] == (["m"] if held_up else [])


def test_three_are_named_in_their_order_with_the_worst_of_each() -> None:
    machines = [draining(name) for name in ("d", "b", "a", "c")]
    one = f"(draining since 2026-01-01T11:55:00Z): {HELD}"
    assert why_held_up(held_up_drains(machines)) == (
        f"The drain of 4 machines is held up: a {one}; b {one}; c {one}; and 1 more. Each "
        "machine's condition Drained says more, and when its pods are deleted by force"
    )
    assert why_held_up([draining("a")]).startswith("The drain of 1 machine is held up: a ")


def test_a_set_says_it_once_and_takes_it_back() -> None:
    here = machine_set(1)
    said = status_of(here, [draining("m")], None, NOW)
    condition = find(said.conditions, "DrainBlocked")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "DrainsHeldUp")
    assert HELD in condition.message
    shown = msgspec.structs.replace(here, status=said)
    assert status_of(shown, [draining("m")], None, ago(-60)) is said
    # What follows from others, further back in the machine's message, is no news.
    more = draining("m", message=f"{HELD}; leaving: shop/c")
    assert status_of(shown, [more], None, ago(-60)) is said
    over: MachineSetStatus = status_of(shown, [draining("m", "Draining")], None, NOW)
    assert find(over.conditions, "DrainBlocked") is None


def test_a_deployment_says_it_of_all_its_sets() -> None:
    old, new = owned_set("old"), owned_set("new")
    pool = deployment()

    def status(machines: list[Machine]) -> str | None:
        by_set = {old.metadata.uid: machines, new.metadata.uid: [machine("x")]}
        snapshot = DeploymentSnapshot(pool, [old, new], by_set, new)
        after = status_after(snapshot, Decision(), NOW, created=False)
        said = find(after.conditions, "DrainBlocked")
        return None if said is None else said.message

    assert status([]) is None
    told = status([draining("m")])
    assert told is not None and HELD in told
