"""What a Node says about its update in place: how far it is, and what set, people and agent ask.

The step reached is the reason of the condition ``InPlaceUpdate``, whose status is always True; what
is asked for are labels. Both are wire values shared with the Go original, sets and node agents.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import final

from mcm.api.core import Node, NodeCondition
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_UPDATE_FAILED_REASON,
    CONDITION_IN_PLACE_UPDATE,
    CORDONED_FOR_UPDATE,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    REASON_CANDIDATE_FOR_UPDATE,
    REASON_DRAIN_SUCCESSFUL,
    REASON_READY_FOR_UPDATE,
    REASON_SELECTED_FOR_UPDATE,
    REASON_UPDATE_FAILED,
    REASON_UPDATE_SUCCESSFUL,
    UPDATE_RESULT_FAILED,
    UPDATE_RESULT_SUCCESSFUL,
)
from mcm.controllers.conditions import find


class Stage(StrEnum):
    """How far an update in place is, in this order."""

    CANDIDATE = REASON_CANDIDATE_FOR_UPDATE
    """Its set wants it updated, now or later."""
    SELECTED = REASON_SELECTED_FOR_UPDATE
    """It is its turn: the Node is drained."""
    DRAINED = REASON_DRAIN_SUCCESSFUL
    READY = REASON_READY_FOR_UPDATE
    """The node agent works."""
    SUCCESSFUL = REASON_UPDATE_SUCCESSFUL
    FAILED = REASON_UPDATE_FAILED


class Result(StrEnum):
    """What the node agent says of its work."""

    SUCCESSFUL = UPDATE_RESULT_SUCCESSFUL
    FAILED = UPDATE_RESULT_FAILED


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InPlaceMarks:
    """``stage`` is None where no update was ever begun; ``since``: when it was reached."""

    stage: Stage | None = None
    since: datetime | None = None
    candidate: bool = False
    selected: bool = False
    result: Result | None = None
    failed_reason: str = ""
    """The node agent's words."""
    cordon_is_ours: bool = False

    @property
    def wanted(self) -> bool:
        """Whoever rolls the update out still wants it carried out now."""
        return self.candidate and self.selected

    @property
    def in_doubt(self) -> bool:
        """Handed to the node agent, and not known to have ended well."""
        return self.stage in (Stage.DRAINED, Stage.READY, Stage.FAILED)

    @property
    def awaits_hand_over(self) -> bool:
        """The update succeeded, and whoever began it has not yet acknowledged that by taking the
        result away."""
        return self.stage is Stage.SUCCESSFUL and self.result is Result.SUCCESSFUL


NO_MARKS = InPlaceMarks()


def marks_of(node: Node) -> InPlaceMarks:
    """Read the marks of ``node``. A reason or a result nobody knows counts as none."""
    labels, annotations = node.metadata.labels, node.metadata.annotations
    condition = in_place_condition(node)
    if (
        condition is None
        and LABEL_CANDIDATE_FOR_UPDATE not in labels
        and LABEL_UPDATE_RESULT not in labels
        and ANNOTATION_CORDONED_BY_MCM not in annotations
    ):
        return NO_MARKS
    return InPlaceMarks(
        stage=_STAGES.get(condition.reason) if condition else None,
        since=condition.last_transition_time if condition else None,
        candidate=LABEL_CANDIDATE_FOR_UPDATE in labels,
        selected=LABEL_SELECTED_FOR_UPDATE in labels,
        result=_RESULTS.get(labels.get(LABEL_UPDATE_RESULT, "")),
        failed_reason=annotations.get(ANNOTATION_UPDATE_FAILED_REASON, ""),
        cordon_is_ours=annotations.get(ANNOTATION_CORDONED_BY_MCM) == CORDONED_FOR_UPDATE,
    )


def in_place_condition(node: Node) -> NodeCondition | None:
    return find(node.status.conditions, CONDITION_IN_PLACE_UPDATE)


_STAGES = {stage.value: stage for stage in Stage}
_RESULTS = {result.value: result for result in Result}
