"""The record of a VM on its machine: provider ID, Node's name, priority, what it was made with."""

from __future__ import annotations

from typing import Final

from mcm.api.labels import is_label_value
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_PRIORITY, LABEL_NODE, PRIORITY_DEFAULT
from mcm.controllers.machine.hot_update.record import made_with
from mcm.controllers.preconditions import for_this_object

_FORGOTTEN: Final[JSONObject] = {"managedFields": [{}]}


def identity_patch(
    machine: Machine,
    *,
    node_name: str,
    provider_id: str,
    has_target: bool,
    provider_spec: JSONObject | None = None,
    keep_managed_fields: bool = False,
) -> JSONObject | None:
    """Record the VM, the Node's name and a priority, as far as they are missing; None if none is.

    Without a target cluster there are no Nodes to name; a name that no label can hold is left out,
    so that the VM is recorded all the same. ``provider_spec`` is what the VM was made with, if it
    was made just now; what is recorded of an earlier one goes.

    Beside that the server is made to forget who set which field of a machine that is a set's, and
    from then on notes it no more, unless somebody applies to the machine (the documented way:
    "Clearing managedFields" of Server-Side Apply). To note it is a third of what a change of a
    machine costs the server, and half of what a machine weighs there and on every watch. One that a
    user made is the user's, who may apply to it again: ``keep_managed_fields`` keeps them all.
    """
    metadata: dict[str, object] = {}
    nameable = has_target and node_name and is_label_value(node_name)
    if nameable and LABEL_NODE not in machine.metadata.labels:
        metadata["labels"] = {LABEL_NODE: node_name}
    annotations: dict[str, str | None] = {}
    if not machine.metadata.annotations.get(ANNOTATION_PRIORITY):
        annotations[ANNOTATION_PRIORITY] = PRIORITY_DEFAULT
    if provider_spec is not None:
        annotations |= made_with(machine, provider_spec)
    if annotations:
        metadata["annotations"] = annotations
    change: JSONObject = {"metadata": metadata} if metadata else {}
    if not machine.spec.provider_id and provider_id:
        change["spec"] = {"providerID": provider_id}
    if change and not keep_managed_fields and machine.metadata.controller_ref() is not None:
        change["metadata"] = {**metadata, **_FORGOTTEN}
    # Not for the version seen: whoever changed something else does not make the VM go away.
    return for_this_object(machine.metadata, change) if change else None
