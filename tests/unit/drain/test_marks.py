from __future__ import annotations

import pytest

from mcm.api.core import Node, NodeCondition, NodeSpec, NodeStatus
from mcm.api.meta import ObjectMeta
from mcm.drain.marks import cordon_patch, terminating_patch
from tests.unit.drain.pods import NOW


def node(*, unschedulable: bool = False, conditions: tuple[NodeCondition, ...] = ()) -> Node:
    return Node(
        metadata=ObjectMeta(name="node", uid="u"),
        spec=NodeSpec(unschedulable=unschedulable),
        status=NodeStatus(conditions=conditions),
    )


def test_a_node_is_cordoned_once() -> None:
    assert cordon_patch(node()) == {"metadata": {"uid": "u"}, "spec": {"unschedulable": True}}
    assert cordon_patch(node(unschedulable=True)) is None


@pytest.mark.parametrize(("unhealthy", "reason"), [(True, "Unhealthy"), (False, "ScaleDown")])
def test_the_terminating_condition_says_why(reason: str, *, unhealthy: bool) -> None:
    patch = terminating_patch(node(), NOW, unhealthy=unhealthy)
    assert patch is not None
    status = patch["status"]
    assert isinstance(status, dict)
    written = status["conditions"][0]
    assert (written["type"], written["status"], written["reason"]) == (
        "Terminating",
        "True",
        reason,
    )


def test_the_terminating_condition_is_written_once() -> None:
    said = NodeCondition(type="Terminating", status="True", reason="ScaleDown")
    assert terminating_patch(node(conditions=(said,)), NOW, unhealthy=True) is None
