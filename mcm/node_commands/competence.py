"""Whose business a Node is: ours to drain or uncordon, a controller's, or another person's."""

from __future__ import annotations

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    CONDITION_NODE_TERMINATING,
    LABEL_FORCE_DELETION,
    STATUS_TRUE,
)
from mcm.api.timestamps import rfc3339
from mcm.controllers.conditions import find
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.node_commands.drain_mark import mark_of

_UPDATING = frozenset({Stage.SELECTED, Stage.DRAINED, Stage.READY})


def why_not_drain(node: Node, machine: Machine | None, *, by: str, take_over: bool) -> str:
    """Say why ``by`` must not drain ``node`` now; empty if they may. ``machine``: whose Node it is,
    as far as that is known."""
    if obstacle := _business_of_a_controller(node, machine):
        return obstacle
    mark = mark_of(node)
    if mark is not None and mark.run and mark.by != by and not take_over:
        return (
            f"{mark.by} is draining node {node.metadata.name} since {rfc3339(mark.since)}; "
            "--take-over goes on in their place"
        )
    return ""


def why_not_uncordon(node: Node, machine: Machine | None) -> str:
    """Say why ``node`` must stay cordoned; empty if it need not."""
    if obstacle := _business_of_a_controller(node, machine):
        return obstacle
    if ANNOTATION_CORDONED_BY_MCM in node.metadata.annotations:
        return (
            f"node {node.metadata.name} was cordoned by its machine's controller for an update in "
            "place, which lifts it in the end"
        )
    return ""


def _business_of_a_controller(node: Node, machine: Machine | None) -> str:
    name = node.metadata.name
    if machine is not None and (since := machine.metadata.deletion_timestamp) is not None:
        return (
            f"machine {machine.metadata.key} of node {name} is being deleted since "
            f"{rfc3339(since)}: its controller drains the node (the machine's label "
            f"{LABEL_FORCE_DELETION}=True lets it use force)"
        )
    terminating = find(node.status.conditions, CONDITION_NODE_TERMINATING)
    if terminating is not None and terminating.status == STATUS_TRUE:
        return (
            f"the machine of node {name} is being deleted, says the node's condition "
            f"{CONDITION_NODE_TERMINATING}: its controller drains the node"
        )
    if marks_of(node).stage in _UPDATING:
        return (
            f"the machine of node {name} is being updated in place: its controller drains the node "
            "and uncordons it"
        )
    return ""
