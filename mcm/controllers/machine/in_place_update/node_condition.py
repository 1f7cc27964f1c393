"""The patches that say on a Node how far its update in place is.

Each applies to the version seen and no other: labels that change meanwhile change the decision.
"""

from __future__ import annotations

from datetime import datetime

from mcm.api.core import Node
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_UPDATE_FAILED_REASON,
    CONDITION_IN_PLACE_UPDATE,
    LABEL_UPDATE_RESULT,
    STATUS_TRUE,
)
from mcm.api.timestamps import rfc3339
from mcm.controllers.in_place_marks import InPlaceMarks, Stage
from mcm.controllers.machine.last_operation import failed_reason
from mcm.controllers.preconditions import for_this_version

_MESSAGES = {
    Stage.CANDIDATE: "Node is a candidate for in-place update",
    Stage.SELECTED: "Node is selected for in-place update",
    Stage.DRAINED: "Node draining successful",
    Stage.READY: "Node is ready for in-place update",
    Stage.SUCCESSFUL: "Node in-place update successful",
    Stage.FAILED: "Node in-place update failed",
}


def stage_patch(node: Node, marks: InPlaceMarks, stage: Stage | None, now: datetime) -> JSONObject:
    """Return the strategic merge patch of the Node's status; None as ``stage`` takes the condition
    away. The other conditions are the kubelet's."""
    condition: JSONObject = {"type": CONDITION_IN_PLACE_UPDATE}
    if stage is None:
        condition["$patch"] = "delete"
    else:
        message = _MESSAGES[stage]
        if stage is Stage.FAILED:
            message = f"{message}: {failed_reason(marks.failed_reason)}"
        condition |= {
            "status": STATUS_TRUE,
            "reason": stage.value,
            "message": message,
            "lastTransitionTime": rfc3339(now),
            "lastHeartbeatTime": rfc3339(now),
        }
    return for_this_version(node.metadata, {"status": {"conditions": [condition]}})


def without_result(node: Node) -> JSONObject:
    """Return the merge patch that takes the agent's result and its reason off the Node."""
    change: JSONObject = {"labels": {LABEL_UPDATE_RESULT: None}}
    if ANNOTATION_UPDATE_FAILED_REASON in node.metadata.annotations:
        change["annotations"] = {ANNOTATION_UPDATE_FAILED_REASON: None}
    return for_this_version(node.metadata, {"metadata": change})
