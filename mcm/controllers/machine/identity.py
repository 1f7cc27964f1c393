"""Who is who: the VM recorded on a machine, and which Node is whose."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_NOT_MANAGED_BY_MCM,
    ANNOTATION_PRIORITY,
    LABEL_NODE,
    LABEL_NODE_MACHINE_NAME,
    PRIORITY_DEFAULT,
)
from mcm.controllers.preconditions import for_this_object


def identity_patch(
    machine: Machine, *, node_name: str, provider_id: str, has_target: bool
) -> JSONObject | None:
    """Record the VM, the Node's name and a priority, as far as they are missing; None if none is.

    Without a target cluster there are no Nodes to name.
    """
    metadata: dict[str, object] = {}
    if has_target and node_name and LABEL_NODE not in machine.metadata.labels:
        metadata["labels"] = {LABEL_NODE: node_name}
    if not machine.metadata.annotations.get(ANNOTATION_PRIORITY):
        metadata["annotations"] = {ANNOTATION_PRIORITY: PRIORITY_DEFAULT}
    change: JSONObject = {"metadata": metadata} if metadata else {}
    if not machine.spec.provider_id and provider_id:
        change["spec"] = {"providerID": provider_id}
    # Not for the version seen: whoever changed something else does not make the VM go away.
    return for_this_object(machine.metadata, change) if change else None


def node_label_patch(machine: Machine, node_name: str) -> JSONObject:
    return for_this_object(machine.metadata, {"metadata": {"labels": {LABEL_NODE: node_name}}})


def machine_keys_of(node: Node, labelled: Sequence[Machine], namespace: str) -> tuple[str, ...]:
    """Return the keys of the machines that ``node`` may concern, both ways of naming counted."""
    keys = dict.fromkeys(machine.metadata.key for machine in labelled)
    if name := node.metadata.labels.get(LABEL_NODE_MACHINE_NAME):
        keys[f"{namespace}/{name}"] = None
    return tuple(keys)


def is_managed(node: Node) -> bool:
    return ANNOTATION_NOT_MANAGED_BY_MCM not in node.metadata.annotations
