from __future__ import annotations

from mcm.api.names import LABEL_MACHINE_TEMPLATE_HASH
from mcm.api.templates import with_label
from mcm.controllers.deployment.hash_labels import plan
from mcm.controllers.deployment.template_identity import template_hash
from tests.unit.deployment.objects import LABELS, owned_set, template
from tests.unit.machineset.objects import machine

MARK = template_hash(template())
LABEL = {LABEL_MACHINE_TEMPLATE_HASH: MARK}


def test_a_set_that_selects_by_its_hash_is_left_alone() -> None:
    assert plan(owned_set(selector={**LABELS, **LABEL}), []) is None


def test_the_template_is_labelled_first() -> None:
    step = plan(owned_set(), [machine("a")])
    assert step is not None
    assert step.machines == ()
    assert step.change == {"spec": {"template": {"metadata": {"labels": LABEL}}}}


def test_then_its_machines_but_not_those_that_leave() -> None:
    labelled = owned_set(of=with_label(template(), LABEL_MACHINE_TEMPLATE_HASH, MARK))
    unmarked, done = machine("a"), machine("b", labels=LABEL)
    step = plan(labelled, [unmarked, done, machine("c", deleted=True)])
    assert step is not None
    assert step.machines == (unmarked,)
    assert step.of_a_machine == {"metadata": {"labels": LABEL}}
    assert step.change is None


def test_and_last_the_selector() -> None:
    labelled = owned_set(of=with_label(template(), LABEL_MACHINE_TEMPLATE_HASH, MARK))
    step = plan(labelled, [machine("b", labels=LABEL)])
    assert step is not None
    assert step.machines == ()
    assert step.change == {
        "metadata": {"labels": LABEL},
        "spec": {"selector": {"matchLabels": LABEL}},
    }


def test_a_label_that_the_template_has_already_is_kept() -> None:
    by_hand = owned_set(of=with_label(template(), LABEL_MACHINE_TEMPLATE_HASH, "mine"))
    step = plan(by_hand, [machine("a")])
    assert step is not None
    assert step.mark == "mine"
