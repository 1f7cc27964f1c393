"""Conditions of our own on a machine: kept beside the Node's, and never taken for them."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import NodeCondition
from mcm.api.machine import MachinePhase, MachineStatus
from mcm.controllers.machine import status as statuses
from mcm.controllers.machine.health.conditions import (
    conditions_differ,
    describe_trouble,
    is_healthy,
)
from mcm.controllers.machine.health.decision import decide
from mcm.controllers.machine.own_conditions import (
    OwnCondition,
    find_own,
    of_node,
    own,
    with_own,
    without_own,
)
from mcm.controllers.reachability import Reachability
from tests.unit.machine.objects import (
    BORN,
    NOT_READY,
    READY,
    SETTINGS,
    after,
    condition,
    machine,
    node,
)

TEMPLATE = OwnCondition.NODE_TEMPLATE_APPLIED
OURS = condition(TEMPLATE.value, "False", reason="Invalid", message="label a b")
LATER = after(minutes=5)

_TYPES = st.sampled_from(["Ready", "DiskPressure", *OwnCondition])
_CONDITIONS = st.lists(
    st.builds(condition, _TYPES, st.sampled_from(["True", "False", "Unknown"])),
    unique_by=lambda c: c.type,
    max_size=4,
)


def shown(*conditions: NodeCondition) -> MachineStatus:
    return MachineStatus(conditions=conditions)


def test_a_condition_of_ours_comes_after_the_nodes() -> None:
    found = with_own(shown(READY), TEMPLATE, "False", "Invalid", "label a b", after(seconds=1.7))
    assert [c.type for c in found.conditions] == ["Ready", "NodeTemplateApplied"]
    assert found.conditions[1].last_transition_time == after(seconds=1)


@pytest.mark.parametrize(
    ("status", "reason", "message", "since"),
    [
        pytest.param("False", "Invalid", "label a b", BORN, id="the same: nothing moves"),
        pytest.param("False", "Refused", "label a b", BORN, id="another reason"),
        pytest.param("False", "Invalid", "label c d", BORN, id="another message"),
        pytest.param("True", "Applied", "", LATER, id="another status"),
    ],
)
def test_since_when_moves_only_with_the_status(
    status: str, reason: str, message: str, since: object
) -> None:
    before = shown(OURS, READY)
    found = with_own(before, TEMPLATE, status, reason, message, LATER)
    expected = NodeCondition(
        type="NodeTemplateApplied",
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,  # type: ignore[arg-type]
    )
    assert find_own(found, TEMPLATE) == expected
    assert len(found.conditions) == 2
    assert (found is before) == (expected == OURS)


def test_one_without_a_time_gets_one() -> None:
    timeless = msgspec.structs.replace(OURS, last_transition_time=None)
    found = with_own(shown(timeless), TEMPLATE, "False", "Invalid", "label a b", LATER)
    assert found.conditions[0].last_transition_time == LATER


def test_a_condition_that_no_longer_applies_is_taken_away() -> None:
    before = shown(READY, OURS)
    assert without_own(before, TEMPLATE) == shown(READY)
    assert without_own(before, OwnCondition.NODE_UNAMBIGUOUS) is before


def test_copying_the_nodes_conditions_keeps_ours() -> None:
    copied = statuses.with_conditions(shown(READY, OURS), (NOT_READY,))
    assert copied.conditions == (NOT_READY, OURS)


def test_a_node_that_uses_a_type_of_ours_changes_nothing() -> None:
    forged = condition(TEMPLATE.value, "True")
    copied = statuses.with_conditions(shown(OURS), (READY, forged))
    assert copied.conditions == (READY, OURS)
    assert not conditions_differ(copied.conditions, (READY, forged))


def test_nobody_judges_a_node_by_ours() -> None:
    assert is_healthy((READY, OURS), frozenset({TEMPLATE.value}))
    assert not is_healthy((OURS,), frozenset())
    assert not conditions_differ((READY, OURS), (READY,))
    assert describe_trouble((OURS, READY), frozenset()) == "none is wrong"
    assert describe_trouble((OURS,), frozenset()) == "none is reported"


def test_a_machine_that_shows_only_ours_never_saw_its_node() -> None:
    here = machine(phase=MachinePhase.RUNNING, node="n", conditions=(OURS,))
    found = decide(here, None, SETTINGS, LATER, may_fail=lambda: True, servers=Reachability())
    assert found.phase is None


def test_a_healthy_machine_with_one_of_ours_is_left_alone() -> None:
    here = machine(phase=MachinePhase.RUNNING, node="n", conditions=(READY, OURS))
    there = node(conditions=(READY,))
    found = decide(here, there, SETTINGS, LATER, may_fail=lambda: True, servers=Reachability())
    assert not found.changes_something


@given(_CONDITIONS, _CONDITIONS)
def test_copies_and_own_never_mix(old: list[NodeCondition], new: list[NodeCondition]) -> None:
    copied = statuses.with_conditions(shown(*old), new).conditions
    assert own(copied) == own(old)
    assert of_node(copied) == of_node(new)
    assert not conditions_differ(copied, new)


@given(_CONDITIONS, st.sampled_from(OwnCondition), st.integers(0, 10**6))
def test_saying_it_and_taking_it_back_leaves_the_rest(
    conditions: list[NodeCondition], kind: OwnCondition, seconds: int
) -> None:
    before = shown(*conditions)
    now = BORN + timedelta(seconds=seconds)
    said = with_own(before, kind, "False", "Because", "why", now)
    assert with_own(said, kind, "False", "Because", "why", now + timedelta(hours=1)) == said
    assert without_own(said, kind) == without_own(before, kind)
