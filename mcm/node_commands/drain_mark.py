"""What ``mcm drain`` writes on its Node: who drains it, by which run, and whose the cordon is.

All of it is one annotation, written in one patch with the cordon that it tells of. Each function
here is pure, and returns a merge patch that is bound to what was read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, final

import msgspec

from mcm.api.core import Node
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_DRAIN_RECORD, ANNOTATION_DRAINED_BY
from mcm.api.timestamps import whole_seconds
from mcm.controllers.preconditions import for_this_object, for_this_version


@final
class DrainMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``by`` is ``user@host``. ``run`` names the command that is at it now; empty: it has ended.

    ``cordoned``: the cordon is ours, and ``mcm uncordon`` lifts it.
    """

    by: str
    since: Annotated[datetime, msgspec.Meta(tz=True)]
    run: str = ""
    cordoned: bool = False


def mark_of(node: Node) -> DrainMark | None:
    """Read the mark; one that nobody can read counts as none, so that no cordon is taken for ours
    that may be somebody's."""
    text = node.metadata.annotations.get(ANNOTATION_DRAINED_BY)
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=DrainMark)
    except msgspec.DecodeError:
        return None


def begun(node: Node, *, by: str, run: str, now: datetime, record: str) -> JSONObject:
    """Cordon the Node, unless it is, and note who drains it, and the drain's ``record``. A drain
    that was begun before goes on: it keeps its first moment, and its cordon stays ours."""
    earlier = mark_of(node)
    mark = DrainMark(
        by=by,
        since=earlier.since if earlier else whole_seconds(now),
        run=run,
        cordoned=not node.spec.unschedulable or (earlier is not None and earlier.cordoned),
    )
    annotations = {ANNOTATION_DRAINED_BY: _text(mark), ANNOTATION_DRAIN_RECORD: record}
    change: JSONObject = {"metadata": {"annotations": annotations}}
    if not node.spec.unschedulable:
        change["spec"] = {"unschedulable": True}
    return for_this_version(node.metadata, change)


def kept(node: Node, run: str, record: str) -> JSONObject | None:
    """Keep the drain's record as it is now. None: the Node is not this run's any more."""
    if _mark_of_run(node, run) is None:
        return None
    change: JSONObject = {"metadata": {"annotations": {ANNOTATION_DRAIN_RECORD: record}}}
    return for_this_version(node.metadata, change)


def finished(node: Node, run: str) -> JSONObject | None:
    """The Node is empty: only a cordon of ours is worth a mark. None: the Node is not this run's
    any more."""
    mark = _mark_of_run(node, run)
    if mark is None:
        return None
    rest = _text(msgspec.structs.replace(mark, run="")) if mark.cordoned else None
    annotations = {ANNOTATION_DRAINED_BY: rest, ANNOTATION_DRAIN_RECORD: None}
    return for_this_version(node.metadata, {"metadata": {"annotations": annotations}})


def stopped(node: Node, run: str) -> JSONObject | None:
    """The run has ended before the Node is empty: another one may go on, with the record that
    stays. None: the Node is not this run's any more."""
    mark = _mark_of_run(node, run)
    if mark is None:
        return None
    annotations = {ANNOTATION_DRAINED_BY: _text(msgspec.structs.replace(mark, run=""))}
    return for_this_version(node.metadata, {"metadata": {"annotations": annotations}})


def lifted(node: Node) -> JSONObject | None:
    """Undo what ``mcm drain`` did: its cordon, its mark and its record. None: there is nothing."""
    ours = (ANNOTATION_DRAINED_BY, ANNOTATION_DRAIN_RECORD)
    annotations = {name: None for name in ours if name in node.metadata.annotations}
    if not annotations:
        return None
    change: JSONObject = {"metadata": {"annotations": annotations}}
    mark = mark_of(node)
    if mark is not None and mark.cordoned and node.spec.unschedulable:
        change["spec"] = {"unschedulable": False}
        return for_this_version(node.metadata, change)
    return for_this_object(node.metadata, change)


def _mark_of_run(node: Node, run: str) -> DrainMark | None:
    mark = mark_of(node)
    return mark if mark is not None and mark.run == run else None


def _text(mark: DrainMark) -> str:
    return msgspec.json.encode(mark).decode()
