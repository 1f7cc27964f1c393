"""What links a machine and its Node: labels on both."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_NODE, LABEL_NODE_MACHINE_NAME
from mcm.controllers.preconditions import for_this_object


def node_label_patch(machine: Machine, node_name: str) -> JSONObject:
    return for_this_object(machine.metadata, {"metadata": {"labels": {LABEL_NODE: node_name}}})


def machine_keys_of(node: Node, labelled: Sequence[Machine], namespace: str) -> tuple[str, ...]:
    """Return the keys of the machines that ``node`` may concern, both ways of naming counted."""
    keys = dict.fromkeys(machine.metadata.key for machine in labelled)
    if name := node.metadata.labels.get(LABEL_NODE_MACHINE_NAME):
        keys[f"{namespace}/{name}"] = None
    return tuple(keys)
