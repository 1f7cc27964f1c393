"""When a set is frozen and unfrozen: a table, and that it neither flaps nor stays for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import ObjectMeta
from mcm.controllers.overshooting.decision import (
    Action,
    SetSeen,
    decide,
    is_frozen,
    is_unfreeze_asked,
)
from mcm.controllers.overshooting.labelling import freezing, unfreezing
from mcm.controllers.overshooting.limits import Limits, Margins

FREEZE, UNFREEZE, KEEP = Action.FREEZE, Action.UNFREEZE, Action.KEEP
LIMITS = Limits(freeze_at=8, unfreeze_at=6)


@pytest.mark.parametrize(
    ("machines", "free", "frozen"),
    [
        (0, KEEP, UNFREEZE),
        (6, KEEP, UNFREEZE),
        (7, KEEP, KEEP),
        (8, FREEZE, KEEP),
        (1000, FREEZE, KEEP),
    ],
)
def test_between_the_limits_all_stays_as_it_is(machines: int, free: Action, frozen: Action) -> None:
    assert decide(SetSeen(machines, LIMITS, frozen=False)) is free
    assert decide(SetSeen(machines, LIMITS, frozen=True)) is frozen


@pytest.mark.parametrize("limits", [LIMITS, None])
@pytest.mark.parametrize("machines", [0, 7, 100])
def test_who_asks_is_obeyed_whatever_the_numbers_are(machines: int, limits: Limits | None) -> None:
    for frozen in (True, False):
        assert decide(SetSeen(machines, limits, frozen=frozen, asked=True)) is UNFREEZE


def test_for_a_while_after_that_a_set_is_not_frozen_again() -> None:
    assert decide(SetSeen(100, LIMITS, frozen=False, spared=True)) is KEEP
    assert decide(SetSeen(0, LIMITS, frozen=True, spared=True)) is UNFREEZE


def test_nothing_follows_from_numbers_that_nobody_can_read() -> None:
    for frozen in (True, False):
        assert decide(SetSeen(100, None, frozen=frozen)) is KEEP
        assert decide(SetSeen(0, None, frozen=frozen)) is KEEP


margins = st.builds(Margins, st.integers(0, 6), st.integers(0, 6))


@given(margins=margins, replicas=st.integers(0, 9), counts=st.lists(st.integers(0, 40)))
def test_one_look_settles_a_set_and_each_turn_takes_a_change_of_its_machines(
    margins: Margins, replicas: int, counts: list[int]
) -> None:
    limits, frozen = margins.of_set(replicas), False
    for count in counts:
        action = decide(SetSeen(count, limits, frozen=frozen))
        frozen = {FREEZE: True, UNFREEZE: False, KEEP: frozen}[action]
        assert decide(SetSeen(count, limits, frozen=frozen)) is KEEP  # looking again does nothing
        assert frozen == (count >= limits.freeze_at) or (
            limits.unfreeze_at < count < limits.freeze_at
        )
    assert decide(SetSeen(replicas, limits, frozen=True)) is UNFREEZE  # what is wanted ends it


@given(margins=margins, replicas=st.integers(0, 9), at=st.integers(0, 40), by=st.integers(0, 1))
def test_counts_closer_to_one_another_than_the_limits_do_not_make_a_set_flap(
    margins: Margins, replicas: int, at: int, by: int
) -> None:
    """Two numbers apart by the hysteresis never both turn the set."""
    limits = margins.of_deployment(replicas, by)
    width = limits.freeze_at - limits.unfreeze_at
    frozen, turns = False, 0
    for count in [at, at + width - 1] * 10:
        action = decide(SetSeen(count, limits, frozen=frozen))
        turns += action is not KEEP
        frozen = {FREEZE: True, UNFREEZE: False, KEEP: frozen}[action]
    assert turns <= 1


@pytest.mark.parametrize("value", ["true", "yes", "", "False"])
def test_a_label_of_another_value_freezes_nothing_and_is_left_alone(value: str) -> None:
    meta = ObjectMeta(name="x", labels={"freeze": value})
    assert not is_frozen(meta)
    assert unfreezing(meta) == {}


def test_the_changes_freeze_and_unfreeze() -> None:
    annotation = "safety.machine.sapcloud.io/unfreeze"
    frozen = ObjectMeta(name="x", labels={"freeze": "True"}, annotations={annotation: ""})
    assert is_frozen(frozen)
    assert is_unfreeze_asked(frozen)
    assert freezing() == {"metadata": {"labels": {"freeze": "True"}}}
    assert unfreezing(frozen) == {
        "metadata": {"labels": {"freeze": None}, "annotations": {annotation: None}}
    }
    assert unfreezing(ObjectMeta(name="x")) == {}
