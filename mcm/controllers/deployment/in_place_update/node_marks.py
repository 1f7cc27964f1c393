"""What the Nodes of a deployment should bear of an update in place, and the change to that.

Nodes of old sets are candidates, each with a record of the set that is wanted. A machine whose
agent was asked keeps its marks until that has answered, whatever was wanted since. When the result
is in, and the machine in the set that it was updated for, everything comes off at once: labels,
records, the cordon, the taint of old Nodes; pods wait for the components that every new Node waits
for. Marks of an update which is not wanted any more come off as well. Marks that no deployment set
are some person's, and stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, final

from mcm.api.core import Node, Taint
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_UPDATE_FAILED_REASON,
    ANNOTATION_UPDATE_TO_SET,
    CORDONED_FOR_UPDATE,
    EFFECT_NO_SCHEDULE,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    TAINT_CRITICAL_COMPONENTS_NOT_READY,
)
from mcm.controllers.deployment.in_place_update.standing import (
    Member,
    Standing,
    UpdateView,
    shows_success,
)
from mcm.controllers.in_place_marks import InPlaceMarks, Stage, marks_of
from mcm.controllers.replicas.membership import is_pinned, is_terminating

ASKED: Final = "true"
"""The value of the labels that ask for an update; only their presence counts."""
CRITICAL_COMPONENTS_NOT_READY: Final = Taint(
    key=TAINT_CRITICAL_COMPONENTS_NOT_READY, effect=EFFECT_NO_SCHEDULE
)
_LABELS: Final = (LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT)
_BEGUN: Final = frozenset({Stage.SELECTED, Stage.DRAINED, Stage.READY, Stage.FAILED})
"""The Node is, or is about to be, cordoned for its update."""


class Wish(Enum):
    """What is wanted of a Node."""

    LEAVE = auto()
    RECORD = auto()
    """Say for which set it is updated: the Go original, or a person, began it without a word."""
    CANDIDATE = auto()
    RESTART = auto()
    """A candidate again: what its agent reported is of an update that is not wanted any more."""
    CLEAR = auto()
    RETURN = auto()
    """Back in service, updated."""


@final
@dataclass(frozen=True, slots=True)
class NodeUpdate:
    """A change of one Node, in parts, since others have changes of it to write as well."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    uncordons: bool = False
    returns: bool = False
    """The taint of old Nodes goes, and pods wait for critical components."""


NO_UPDATE: Final = NodeUpdate()


def node_update(view: UpdateView, member: Member, *, select: bool) -> NodeUpdate:
    """Return what is to be changed on the member's Node. ``select``: it is its turn."""
    node, new = member.node, view.new
    if node is None:
        return NO_UPDATE
    match wish_for(view, member):
        case Wish.LEAVE:
            return NO_UPDATE
        case Wish.CLEAR:
            return cleared(node)
        case Wish.RETURN:
            return _returned(node)
        case Wish.RECORD:
            target = view.destination(member)
            return _recorded(node, target.metadata.name) if target is not None else NO_UPDATE
        case Wish.RESTART if new is not None:
            return _asking(node, new.metadata.name, again=True)
        case Wish.CANDIDATE if new is not None:
            return _asking(node, new.metadata.name, select=select)
        case _:
            return NO_UPDATE


def wish_for(view: UpdateView, member: Member) -> Wish:
    """Decide what is wanted of the member's Node."""
    marks = member.marks
    if marks is None or is_terminating(member.machine):
        return Wish.LEAVE
    if marks.awaits_hand_over:
        return _after_success(view, member)
    if is_pinned(member.machine) and view.is_old(member):
        return Wish.LEAVE  # it came just now; what it is to become next, the next pass says
    if view.going_on and view.is_old(member):
        return _of_an_old_set(view, member, marks)
    return _not_to_be_updated(view, member)


def _after_success(view: UpdateView, member: Member) -> Wish:
    if not (view.strategy or view.is_ours(member)) or not shows_success(member.machine):
        return Wish.LEAVE
    target = view.destination(member)
    if target is member.owner:
        return Wish.RETURN
    if target is not None:
        return Wish.LEAVE if member.recorded else Wish.RECORD
    if not member.recorded:
        return Wish.LEAVE  # the new set is yet to be made
    return Wish.RESTART if view.going_on and view.is_old(member) else Wish.CLEAR


def _of_an_old_set(view: UpdateView, member: Member, marks: InPlaceMarks) -> Wish:
    if not member.recorded and marks.stage in _BEGUN:
        return Wish.RECORD
    if member.is_with_the_agent:
        return Wish.LEAVE
    if member.standing is Standing.FAILED:
        new = view.new.metadata.name if view.new is not None else ""
        return Wish.LEAVE if member.recorded in ("", new) else Wish.RESTART
    return Wish.CANDIDATE


def _not_to_be_updated(view: UpdateView, member: Member) -> Wish:
    if view.strategy and (view.new is None or view.snapshot.deployment.spec.paused):
        return Wish.LEAVE
    if not view.is_ours(member):
        return Wish.LEAVE
    target = view.destination(member)
    working = view.strategy and member.is_with_the_agent
    if working and target is not None and target is not member.owner:
        return Wish.LEAVE if member.recorded else Wish.RECORD  # until the agent has answered
    return Wish.CLEAR


def bears_marks(node: Node) -> bool:
    """Tell whether anything on ``node`` asks for an update, or speaks of one."""
    labels, annotations = node.metadata.labels, node.metadata.annotations
    return (
        any(label in labels for label in _LABELS)
        or ANNOTATION_UPDATE_TO_SET in annotations
        or ANNOTATION_UPDATE_FAILED_REASON in annotations
    )


def cleared(node: Node) -> NodeUpdate:
    """Return what takes all marks off ``node``. The machine controller, which then finds none,
    calls the update off and lifts the cordon that it recorded."""
    if not bears_marks(node):
        return NO_UPDATE
    return NodeUpdate(
        labels={label: None for label in _LABELS if label in node.metadata.labels},
        annotations=_without(node, ANNOTATION_UPDATE_TO_SET, ANNOTATION_UPDATE_FAILED_REASON),
        uncordons=_is_cordoned_unrecorded(node),
    )


def _returned(node: Node) -> NodeUpdate:
    ours = node.metadata.annotations.get(ANNOTATION_CORDONED_BY_MCM) == CORDONED_FOR_UPDATE
    taken = (ANNOTATION_UPDATE_TO_SET, ANNOTATION_UPDATE_FAILED_REASON)
    return NodeUpdate(
        labels={label: None for label in _LABELS if label in node.metadata.labels},
        annotations=_without(node, *taken, *((ANNOTATION_CORDONED_BY_MCM,) if ours else ())),
        uncordons=node.spec.unschedulable and (ours or _is_cordoned_unrecorded(node)),
        returns=True,
    )


def _asking(node: Node, target: str, *, select: bool = False, again: bool = False) -> NodeUpdate:
    labels, annotations = node.metadata.labels, node.metadata.annotations
    wanted: dict[str, str | None] = {}
    if LABEL_CANDIDATE_FOR_UPDATE not in labels:
        wanted[LABEL_CANDIDATE_FOR_UPDATE] = ASKED
    if select and LABEL_SELECTED_FOR_UPDATE not in labels:
        wanted[LABEL_SELECTED_FOR_UPDATE] = ASKED
    recorded: dict[str, str | None] = {}
    if annotations.get(ANNOTATION_UPDATE_TO_SET) != target:
        recorded[ANNOTATION_UPDATE_TO_SET] = target
    if again:
        past = (LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT)
        wanted |= {label: None for label in past if label in labels}
        recorded |= _without(node, ANNOTATION_UPDATE_FAILED_REASON)
    return NodeUpdate(labels=wanted, annotations=recorded)


def _without(node: Node, *keys: str) -> dict[str, str | None]:
    return {key: None for key in keys if key in node.metadata.annotations}


def _recorded(node: Node, target: str) -> NodeUpdate:
    annotations: dict[str, str | None] = {ANNOTATION_UPDATE_TO_SET: target}
    if _is_cordoned_unrecorded(node):
        annotations[ANNOTATION_CORDONED_BY_MCM] = CORDONED_FOR_UPDATE
    return NodeUpdate(annotations=annotations)


def _is_cordoned_unrecorded(node: Node) -> bool:
    """Tell whether the Go original cordoned it for its update, which leaves no word of that. Where
    our record is, an update began here: a cordon without word is a person's."""
    annotations, marks = node.metadata.annotations, marks_of(node)
    if ANNOTATION_UPDATE_TO_SET in annotations or ANNOTATION_CORDONED_BY_MCM in annotations:
        return False
    return node.spec.unschedulable and (marks.stage in _BEGUN or marks.awaits_hand_over)
