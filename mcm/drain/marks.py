"""What a drain writes on its Node before it begins: no new pods, and that the Node will go."""

from __future__ import annotations

from datetime import datetime

from mcm.api.core import Node
from mcm.api.meta import JSONObject
from mcm.api.names import (
    CONDITION_NODE_TERMINATING,
    REASON_SCALE_DOWN,
    REASON_UNHEALTHY,
    STATUS_TRUE,
)
from mcm.api.timestamps import rfc3339

_MESSAGES = {
    REASON_SCALE_DOWN: "Machine Controller is scaling down machine",
    REASON_UNHEALTHY: "Machine Controller is terminating failed machine",
}


def cordon_patch(node: Node) -> JSONObject | None:
    """Return the merge patch that keeps new pods away; None if they are kept away."""
    if node.spec.unschedulable:
        return None
    return {"metadata": {"uid": node.metadata.uid}, "spec": {"unschedulable": True}}


def terminating_patch(node: Node, now: datetime, *, unhealthy: bool) -> JSONObject | None:
    """Return the strategic merge patch of the Node's status that says it is going; None if it does.

    Only the one condition is touched: the others are the kubelet's, and newer than what we read.
    """
    if any(
        c.type == CONDITION_NODE_TERMINATING and c.status == STATUS_TRUE
        for c in node.status.conditions
    ):
        return None
    reason = REASON_UNHEALTHY if unhealthy else REASON_SCALE_DOWN
    condition = {
        "type": CONDITION_NODE_TERMINATING,
        "status": STATUS_TRUE,
        "reason": reason,
        "message": _MESSAGES[reason],
        "lastTransitionTime": rfc3339(now),
        "lastHeartbeatTime": rfc3339(now),
    }
    return {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": [condition]}}
