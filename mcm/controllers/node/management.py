"""Whether a Node is a machine's, and what must be written on it accordingly."""

from __future__ import annotations

from datetime import datetime, timedelta

from mcm.api.core import Node
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_NOT_MANAGED_BY_MCM,
    NODE_FINALIZER,
    NOT_MANAGED_VALUE,
)
from mcm.controllers.finalizers import InUseDecision
from mcm.controllers.preconditions import for_this_object, for_this_version


def decide(
    node: Node, *, has_machine: bool, now: datetime, patience: timedelta, ours: bool = True
) -> InUseDecision:
    """Decide about ``node``. A young one may be a VM's whose machine does not name it yet. Of one
    without machine that may be another manager's (not ``ours``) nothing is said."""
    meta = node.metadata
    marked = ANNOTATION_NOT_MANAGED_BY_MCM in meta.annotations
    if has_machine:
        unmark: JSONObject = {"metadata": {"annotations": {ANNOTATION_NOT_MANAGED_BY_MCM: None}}}
        return InUseDecision(for_this_object(meta, unmark) if marked else None)
    if not ours:
        return InUseDecision()
    left = ((meta.creation_timestamp or now) + patience - now).total_seconds()
    if left > 0:
        return InUseDecision(after=left, reason="node without machine")
    held = NODE_FINALIZER in meta.finalizers
    if marked and not held:
        return InUseDecision()
    metadata: JSONObject = {"annotations": {ANNOTATION_NOT_MANAGED_BY_MCM: NOT_MANAGED_VALUE}}
    if not held:
        return InUseDecision(for_this_object(meta, {"metadata": metadata}))
    metadata["finalizers"] = [f for f in meta.finalizers if f != NODE_FINALIZER]
    return InUseDecision(for_this_version(meta, {"metadata": metadata}))
