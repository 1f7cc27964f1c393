"""Carrying handovers on from pass to pass: as they stand now, and those that others began."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from mcm.api.core import Pod
from mcm.drain.request import Limits
from mcm.drain.volumes import Handover, NodeVolumes, advanced, of_nobody, opened


def carried_on(
    handovers: Iterable[Handover],
    pods: Iterable[Pod],
    view: NodeVolumes,
    limits: Limits,
    now: datetime,
    *,
    let_go: Collection[str] = (),
) -> tuple[Handover, ...]:
    """Return the handovers as they stand now, those that are over by now too.

    ``pods`` are those that must leave the Node. One that ends without a handover was asked by
    somebody else, or by a process that could not write it down: its volumes are on their way. So
    is what is attached though no pod of the Node uses it: its pod was gone before anybody looked.
    ``let_go`` are the volumes that were waited for too long already.
    """
    known = {h.pod_uid: h for h in handovers if not (h.of_nobody and _used(h, view))}
    for pod in pods:
        meta = pod.metadata
        if meta.deletion_timestamp is not None and meta.uid not in known:
            found = opened(pod, view, now)
            if found is not None:
                known[meta.uid] = found
    on_their_way = {holding.volume for h in known.values() for holding in h.volumes}
    for uid, holding in view.left_behind():
        if holding.volume not in on_their_way and holding.volume not in let_go:
            found = of_nobody(uid, holding, now)
            known[found.pod_uid] = found
    return tuple(advanced(handover, view, limits, now) for handover in known.values())


def _used(handover: Handover, view: NodeVolumes) -> bool:
    """Tell whether there is a pod after all: the mirror of pods had been behind."""
    return any(view.users_here(holding) for holding in handover.volumes)
