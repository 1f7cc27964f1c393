"""Carrying handovers on from pass to pass: as they stand now, and those that others began."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mcm.api.core import Pod
from mcm.drain.request import Limits
from mcm.drain.volumes import Handover, NodeVolumes, advanced, opened


def carried_on(
    handovers: Iterable[Handover],
    pods: Iterable[Pod],
    view: NodeVolumes,
    limits: Limits,
    now: datetime,
) -> tuple[Handover, ...]:
    """Return the handovers as they stand now, those that are over by now too.

    ``pods`` are those that must leave the Node. One that ends without a handover was asked by
    somebody else, or by a process that could not write it down: its volumes are on their way.
    """
    known = {handover.pod_uid: handover for handover in handovers}
    for pod in pods:
        meta = pod.metadata
        if meta.deletion_timestamp is not None and meta.uid not in known:
            found = opened(pod, view, now)
            if found is not None:
                known[meta.uid] = found
    return tuple(advanced(handover, view, limits, now) for handover in known.values())
