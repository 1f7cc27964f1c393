"""What keeps new pods off a Node while it is drained, and whose that mark is.

A cordon that is to be lifted again is recorded on the Node: a user's own one is never lifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from mcm.api.core import Node
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    CORDONED_FOR_UPDATE,
)
from mcm.client.requests import PatchType
from mcm.controllers.preconditions import for_this_object, for_this_version
from mcm.drain.marks import cordon_patch


class Mark(Enum):
    """Ways to keep new pods off a Node."""

    CORDON = auto()
    """For good: the Node goes."""
    CORDON_FOR_UPDATE = auto()
    """Until the update in place is over, and recorded as ours."""
    BY_THE_ASKER = auto()
    """Who asks for the drain has marked the Node, in a patch with other things to write."""


@final
@dataclass(frozen=True, slots=True)
class NodePatch:
    body: JSONObject
    kind: PatchType


def mark_patch(mark: Mark, node: Node) -> NodePatch | None:
    """Return the patch that marks ``node``; None if it is marked."""
    match mark:
        case Mark.CORDON:
            body = cordon_patch(node)
            return None if body is None else NodePatch(body, PatchType.MERGE)
        case Mark.CORDON_FOR_UPDATE:
            return _cordon_for_update(node)
        case Mark.BY_THE_ASKER:
            return None


def unmark_patch(mark: Mark, node: Node) -> NodePatch | None:
    """Return the patch that takes our mark off ``node``; None if none is ours to take."""
    match mark:
        case Mark.CORDON | Mark.BY_THE_ASKER:
            return None
        case Mark.CORDON_FOR_UPDATE:
            return _uncordon(node)


def _cordon_for_update(node: Node) -> NodePatch | None:
    """Cordon by a patch of the version seen: who else cordons meanwhile keeps the cordon."""
    if node.spec.unschedulable:
        return None
    annotations = {ANNOTATION_CORDONED_BY_MCM: CORDONED_FOR_UPDATE}
    body = {"metadata": {"annotations": annotations}, "spec": {"unschedulable": True}}
    return NodePatch(for_this_version(node.metadata, body), PatchType.MERGE)


def _uncordon(node: Node) -> NodePatch | None:
    """Lift our cordon; where somebody lifted it before, only the record goes."""
    if node.metadata.annotations.get(ANNOTATION_CORDONED_BY_MCM) != CORDONED_FOR_UPDATE:
        return None
    body: JSONObject = {"metadata": {"annotations": {ANNOTATION_CORDONED_BY_MCM: None}}}
    if node.spec.unschedulable:
        body["spec"] = {"unschedulable": False}
    return NodePatch(for_this_object(node.metadata, body), PatchType.MERGE)
