"""Which Node is whose: machines name Nodes by label, Nodes name machines, and some are nobody's."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_NOT_MANAGED_BY_MCM, LABEL_NODE, LABEL_NODE_MACHINE_NAME
from mcm.controllers.indexes import nodes_claiming
from mcm.controllers.preconditions import for_this_object
from mcm.informers.store import Store


def node_label_patch(machine: Machine, node_name: str) -> JSONObject:
    return for_this_object(machine.metadata, {"metadata": {"labels": {LABEL_NODE: node_name}}})


def node_claiming(nodes: Store[Node], machine: Machine) -> Node | None:
    """Find a Node that says it is ``machine``'s: only needed where the machine cannot say."""
    return next(iter(nodes_claiming(nodes, machine.metadata.name)), None)


def machine_keys_of(node: Node, labelled: Sequence[Machine], namespace: str) -> tuple[str, ...]:
    """Return the keys of the machines that ``node`` may concern, both ways of naming counted."""
    keys = dict.fromkeys(machine.metadata.key for machine in labelled)
    if name := node.metadata.labels.get(LABEL_NODE_MACHINE_NAME):
        keys[f"{namespace}/{name}"] = None
    return tuple(keys)


def is_managed(node: Node) -> bool:
    return ANNOTATION_NOT_MANAGED_BY_MCM not in node.metadata.annotations
