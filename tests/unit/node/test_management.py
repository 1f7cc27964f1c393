from __future__ import annotations

from datetime import timedelta

import pytest

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.names import (
    ANNOTATION_NODE_NAMESPACE,
    ANNOTATION_NOT_MANAGED_BY_MCM,
    LABEL_NODE_MACHINE_NAME,
    NODE_FINALIZER,
)
from mcm.controllers.finalizers import InUseDecision, keys_of_user_change
from mcm.controllers.node.controller import concerns_mark
from mcm.controllers.node.management import decide
from mcm.controllers.node_ownership import NodeOwners, is_named, whose
from mcm.informers import Change, Store
from tests.unit.machine.objects import BORN, READY, after, machine, node

MARK = ANNOTATION_NOT_MANAGED_BY_MCM
PATIENCE = timedelta(minutes=20)
OWNERS = NodeOwners(Store(), Store(), "ns")


def decision(found: Node, *, has_machine: bool, minutes: float = 30) -> InUseDecision:
    return decide(found, has_machine=has_machine, now=after(minutes=minutes), patience=PATIENCE)


def test_a_young_node_may_still_be_claimed() -> None:
    assert decision(node(), has_machine=False, minutes=5) == InUseDecision(after=15 * 60)


def test_a_node_of_nobody_is_marked_and_let_go_in_one_write() -> None:
    held = node(finalizers=("a", NODE_FINALIZER, "b"))
    assert decision(held, has_machine=False).patch == {
        "metadata": {
            "uid": "uid-n",
            "resourceVersion": "9",
            "annotations": {MARK: "1"},
            "finalizers": ["a", "b"],
        }
    }


def test_a_node_without_our_finalizer_is_only_marked() -> None:
    assert decision(node(), has_machine=False).patch == {
        "metadata": {"uid": "uid-n", "annotations": {MARK: "1"}}
    }


def test_a_marked_node_costs_nothing_more() -> None:
    assert decision(node(annotations={MARK: "1"}), has_machine=False) == InUseDecision()


def test_a_machine_takes_the_mark_away_whatever_the_nodes_age() -> None:
    patch = decision(node(annotations={MARK: "1"}), has_machine=True, minutes=1).patch
    assert patch == {"metadata": {"uid": "uid-n", "annotations": {MARK: None}}}
    assert decision(node(), has_machine=True) == InUseDecision()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, node(), True),
        (node(), None, False),
        (node(), node(conditions=(READY,)), False),
        (node(), node(labels={"a": "b"}), True),
        (node(), node(annotations={"a": "b"}), True),
        (node(), node(finalizers=("f",)), True),
    ],
)
def test_heartbeats_do_not_concern_the_mark(
    old: Node | None, new: Node | None, *, expected: bool
) -> None:
    assert concerns_mark(Change(old, new)) is expected


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (None, machine(node="n"), ("n",)),
        (machine(node="n"), None, ("n",)),
        (machine(), machine(node="n"), ("n",)),
        (machine(node="n"), machine(node="o"), ("n", "o")),
        (machine(node="n"), machine(node="n", deleted=BORN), ()),
        (None, machine(), ()),
    ],
)
def test_a_machine_concerns_the_node_it_claims_or_claimed(
    old: Machine | None, new: Machine | None, names: tuple[str, ...]
) -> None:
    assert keys_of_user_change(OWNERS.nodes_about, Change(old, new)) == names


def test_of_a_node_that_may_be_anothers_nothing_is_said_unless_it_is_a_machines() -> None:
    held = node(annotations={MARK: "1"}, finalizers=(NODE_FINALIZER,))
    now = after(minutes=30)
    assert decide(held, has_machine=False, now=now, patience=PATIENCE, ours=False) == (
        InUseDecision()
    )
    claimed = decide(held, has_machine=True, now=now, patience=PATIENCE, ours=False)
    assert claimed.patch is not None


def test_a_node_of_another_namespace_is_no_machines_of_that_name_here() -> None:
    young = machine(node="")
    named = {LABEL_NODE_MACHINE_NAME: young.metadata.name}
    here, there = (
        node(labels=named, annotations={ANNOTATION_NODE_NAMESPACE: namespace})
        for namespace in (young.metadata.namespace, "other")
    )
    assert is_named(here, young) and not is_named(there, young)
    assert whose(here, [young]).is_of(young) and whose(there, [young]).owner is None
