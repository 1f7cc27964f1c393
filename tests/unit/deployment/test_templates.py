from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import MachineTemplate
from mcm.api.names import LABEL_MACHINE_TEMPLATE_HASH
from mcm.api.templates import with_label
from mcm.controllers.deployment.templates import labelling, same_template, set_name, template_hash
from tests.unit.deployment.objects import LABELS, owned_set, template
from tests.unit.machineset.objects import machine


@pytest.mark.parametrize(
    "other",
    [
        template(),
        with_label(template(), LABEL_MACHINE_TEMPLATE_HASH, "1234"),
        template(spec={"nodeTemplate": {"metadata": {"labels": {"a": "b"}}}}),
        template(spec={"drainTimeout": "10m", "maxEvictRetries": 3, "nodeConditions": "X"}),
        template(spec={"class": {"kind": "AWSMachineClass", "name": "class-a"}}),
        template(spec={"class": {"kind": "MachineClass", "name": "class-a", "apiGroup": ""}}),
        template(spec={"providerID": ""}),
        template(spec={"somethingNew": 1}),
        template(metadata={"creationTimestamp": None, "annotations": {}, "finalizers": None}),
        template(metadata={"somethingNew": {"a": 1}}),
    ],
)
def test_what_can_change_in_place_or_says_nothing_makes_no_other_template(
    other: MachineTemplate,
) -> None:
    assert same_template(template(), other)
    assert template_hash(template()) == template_hash(other)
    assert set_name("pool", template()) == set_name("pool", other)


@pytest.mark.parametrize(
    "other",
    [
        template("class-b"),
        template(spec={"class": {"kind": "MachineClass", "name": "class-a", "apiGroup": "x"}}),
        template(spec={"providerID": "aws:///i-1"}),
        template(metadata={"labels": {**LABELS, "new": "label"}}),
        template(metadata={"labels": {"name": "else"}}),
        template(metadata={"annotations": {"a": "b"}}),
        template(metadata={"finalizers": ["example.org/keep"]}),
    ],
)
def test_what_takes_a_new_machine_makes_another_template(other: MachineTemplate) -> None:
    assert not same_template(template(), other)
    assert template_hash(template()) != template_hash(other)


def test_names_and_hashes_never_change_between_versions() -> None:
    """A set is found again by its template, but a name that moved would leave a gap in history."""
    assert template_hash(template()) == "3977257823"
    assert set_name("pool", template()) == "pool-lcw7g"
    assert set_name("pool", template(), 1) == "pool-htt2b"


def test_a_collision_count_gives_another_name_and_hash() -> None:
    names = {set_name("pool", template(), n) for n in (None, 0, 1, 2, 3)}
    hashes = {template_hash(template(), n) for n in (None, 0, 1, 2, 3)}
    assert len(names) == len(hashes) == 5


@given(st.text(max_size=20), st.integers(0, 2**31))
def test_hashes_are_label_values_and_names_are_short(class_name: str, collisions: int) -> None:
    value = template_hash(template(class_name), collisions)
    assert value.isdigit() and 0 <= int(value) < 2**32
    name = set_name("pool", template(class_name), collisions)
    assert name.startswith("pool-") and len(name) == 10


def test_a_long_name_leaves_room_for_the_letters() -> None:
    assert len(set_name("x" * 253, template())) == 253


MARK = template_hash(template())
LABEL = {LABEL_MACHINE_TEMPLATE_HASH: MARK}


def test_a_set_that_selects_by_its_hash_is_left_alone() -> None:
    assert labelling(owned_set(selector={**LABELS, **LABEL}), []) is None


def test_the_template_is_labelled_first() -> None:
    step = labelling(owned_set(), [machine("a")])
    assert step is not None
    assert step.machines == ()
    assert step.change == {"spec": {"template": {"metadata": {"labels": LABEL}}}}


def test_then_its_machines_but_not_those_that_leave() -> None:
    labelled = owned_set(of=with_label(template(), LABEL_MACHINE_TEMPLATE_HASH, MARK))
    unmarked, done = machine("a"), machine("b", labels=LABEL)
    step = labelling(labelled, [unmarked, done, machine("c", deleted=True)])
    assert step is not None
    assert step.machines == (unmarked,)
    assert step.of_a_machine == {"metadata": {"labels": LABEL}}
    assert step.change is None


def test_and_last_the_selector() -> None:
    labelled = owned_set(of=with_label(template(), LABEL_MACHINE_TEMPLATE_HASH, MARK))
    step = labelling(labelled, [machine("b", labels=LABEL)])
    assert step is not None
    assert step.machines == ()
    assert step.change == {
        "metadata": {"labels": LABEL},
        "spec": {"selector": {"matchLabels": LABEL}},
    }


def test_a_label_that_the_template_has_already_is_kept() -> None:
    by_hand = owned_set(of=with_label(template(), LABEL_MACHINE_TEMPLATE_HASH, "mine"))
    step = labelling(by_hand, [machine("a")])
    assert step is not None
    assert step.mark == "mine"
