"""The condition ``Preserved`` of a Node: its wording, when it must be written, and what it proves.

It is written after the other marks, so where it holds they were set; from then on they are left to
whoever changes them. That its pods have left is remembered in its message, as in the Go original.
"""

from __future__ import annotations

from datetime import datetime
from typing import final

import msgspec

from mcm.api.codec import to_json_object
from mcm.api.core import Node, NodeCondition
from mcm.api.machine import MachineStatus
from mcm.api.meta import JSONObject
from mcm.api.names import (
    CONDITION_PRESERVED,
    PRESERVE_AUTO,
    REASON_PRESERVATION_STOPPED,
    REASON_PRESERVED_BY_MCM,
    REASON_PRESERVED_BY_USER,
    STATUS_FALSE,
    STATUS_TRUE,
)
from mcm.api.timestamps import rfc3339, whole_seconds
from mcm.controllers.conditions import without
from mcm.controllers.machine.own_conditions import of_node
from mcm.controllers.machine.status import with_conditions

DRAINED = "Preserved node drained successfully."
NOT_DRAINED = "Preserved node could not be drained."


@final
class Wording(msgspec.Struct, frozen=True):
    """What the condition is to say."""

    status: str
    reason: str
    message: str


def preserved(request: str, until: datetime, *, drain: str = "") -> Wording:
    """Word that a machine is kept ``until`` then. ``drain``: DRAINED, NOT_DRAINED, or empty for one
    that did not fail."""
    reason = REASON_PRESERVED_BY_MCM if request == PRESERVE_AUTO else REASON_PRESERVED_BY_USER
    message = f"Machine preserved until {rfc3339(until)}."
    status = STATUS_FALSE if drain == NOT_DRAINED else STATUS_TRUE
    return Wording(status, reason, f"{drain} {message}" if drain else message)


STOPPED = Wording(STATUS_FALSE, REASON_PRESERVATION_STOPPED, "")


def find(node: Node) -> NodeCondition | None:
    return next((c for c in node.status.conditions if c.type == CONDITION_PRESERVED), None)


def says_preserved(node: Node) -> bool:
    """Tell whether the Node bears our marks, whatever became of the machine's own record."""
    condition = find(node)
    return condition is not None and condition.reason in (
        REASON_PRESERVED_BY_MCM,
        REASON_PRESERVED_BY_USER,
    )


def says_drained(node: Node) -> bool:
    """Tell whether the pods left when the machine failed, and it has not recovered since."""
    condition = find(node)
    return (
        condition is not None and condition.status == STATUS_TRUE and DRAINED in condition.message
    )


def condition_patch(node: Node, wanted: Wording, now: datetime) -> JSONObject | None:
    """Return the strategic merge patch of the Node's status that says so; None if it does.

    Only the one condition is touched: the others are the kubelet's, and newer than what we read.
    """
    before = find(node)
    if before is not None and wanted == Wording(before.status, before.reason, before.message):
        return None
    stays = before is not None and before.status == wanted.status
    since = before.last_transition_time if before is not None and stays else None
    condition = to_json_object(
        NodeCondition(
            type=CONDITION_PRESERVED,
            status=wanted.status,
            last_transition_time=since or whole_seconds(now),
            reason=wanted.reason,
            message=wanted.message,
        )
    )
    condition["message"] = wanted.message  # an empty one is to be written as well
    condition["lastHeartbeatTime"] = rfc3339(now)
    return {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": [condition]}}


def mirrored(status: MachineStatus, node: Node) -> MachineStatus:
    """Copy the Node's condition into a machine's status, if its others have been copied."""
    condition = find(node)
    if condition is None or condition in status.conditions or not of_node(status.conditions):
        return status
    others = without(status.conditions, CONDITION_PRESERVED)
    return with_conditions(status, (*of_node(others), condition))
