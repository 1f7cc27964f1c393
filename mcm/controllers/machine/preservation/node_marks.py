"""The taint and annotations of a kept machine's Node: what to set, and what is ours to remove.

Somebody who kept the autoscaler off before us, or wants it to come, has their way, during and after
the preservation: ours is only what was written together with ``…-by-mcm``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from mcm.api.codec import to_json_object
from mcm.api.core import Node, Taint
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    EFFECT_NO_SCHEDULE,
    SCALE_DOWN_DISABLED_VALUE,
    TAINT_PRESERVED,
)
from mcm.api.timestamps import whole_seconds
from mcm.controllers.preconditions import for_this_version


def is_tainted(node: Node) -> bool:
    return any(map(_is_ours, node.spec.taints))


def tainted_since(node: Node) -> datetime | None:
    """Return when our taint was set; None if it is not there, or does not say."""
    return next((t.time_added for t in node.spec.taints if _is_ours(t)), None)


def marking_patch(
    node: Node, now: datetime, *, annotated: bool, tainted: bool | None
) -> JSONObject | None:
    """Return the merge patch that sets what is missing; None if nothing is.

    ``annotated``: the autoscaler is to be kept off. ``tainted``: so are new pods; False: not any
    more, None: as it is. The taint's time is when the drain of the Node began.
    """
    annotations: dict[str, str | None] = {}
    if annotated and ANNOTATION_SCALE_DOWN_DISABLED not in node.metadata.annotations:
        annotations = {
            ANNOTATION_SCALE_DOWN_DISABLED: SCALE_DOWN_DISABLED_VALUE,
            ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: SCALE_DOWN_DISABLED_VALUE,
        }
    taints = node.spec.taints
    if tainted and not is_tainted(node):
        added = whole_seconds(now)
        taints = (
            *taints,
            Taint(key=TAINT_PRESERVED, effect=EFFECT_NO_SCHEDULE, time_added=added),
        )
    elif tainted is False:
        taints = _without_ours(node)
    return _patch(node, annotations, taints)


def unmarking_patch(node: Node, *, forget: bool) -> JSONObject | None:
    """Return the merge patch that takes away what is ours; with ``forget`` also the request."""
    annotations = node.metadata.annotations
    gone = [ANNOTATION_PRESERVE] if forget else []
    if ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM in annotations:
        gone.append(ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM)
        if annotations.get(ANNOTATION_SCALE_DOWN_DISABLED) == SCALE_DOWN_DISABLED_VALUE:
            gone.append(ANNOTATION_SCALE_DOWN_DISABLED)
    change = {name: None for name in gone if name in annotations}
    return _patch(node, change, _without_ours(node))


def _without_ours(node: Node) -> tuple[Taint, ...]:
    return tuple(t for t in node.spec.taints if not _is_ours(t))


def _is_ours(taint: Taint) -> bool:
    return taint.key == TAINT_PRESERVED and taint.effect == EFFECT_NO_SCHEDULE


def _patch(
    node: Node, annotations: Mapping[str, str | None], taints: tuple[Taint, ...]
) -> JSONObject | None:
    change: JSONObject = {}
    if annotations:
        change["metadata"] = {"annotations": dict(annotations)}
    if taints != node.spec.taints:
        change["spec"] = {"taints": [to_json_object(t) for t in taints] or None}
    return for_this_version(node.metadata, change) if change else None
