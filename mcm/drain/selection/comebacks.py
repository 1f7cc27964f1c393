"""Pods that come back: their owner puts them onto the node again, as they tolerate its cordon.

To evict them for ever ends at the deadline only, by force. So an owner whose pods have come back
twice is left alone: its later pods stay on the node, and keep the drain from nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeAlias, final

from mcm.api.core import Pod, Taint
from mcm.api.names import EFFECT_NO_SCHEDULE, TAINT_UNSCHEDULABLE
from mcm.api.tolerations import tolerates

CORDON: Final = Taint(key=TAINT_UNSCHEDULABLE, effect=EFFECT_NO_SCHEDULE)
MOST: Final = 2
"""How often an owner's pods may come back and be taken away once more."""


@final
@dataclass(frozen=True, slots=True)
class Comeback:
    """``times``: how often pods of an owner came back and were evicted, all that were there at once
    counted as one. ``since``: when the first of the last such lot was evicted."""

    times: int
    since: datetime


Comebacks: TypeAlias = Mapping[str, Comeback]
"""By the owner's UID. A drain's record keeps them; few drains have any."""

NO_COMEBACKS: Final[Comebacks] = MappingProxyType({})


def with_eviction(
    comebacks: Comebacks, pod: Pod, *, start: datetime, now: datetime, barrier: Taint = CORDON
) -> Comebacks:
    """Return ``comebacks`` after the eviction of ``pod`` was accepted; the same object, if it had
    not come back. ``barrier`` is what keeps new pods off the node."""
    owner = pod.metadata.controller_ref()
    if owner is None or not came_back(pod, start, barrier):
        return comebacks
    before = comebacks.get(owner.uid)
    created = pod.metadata.creation_timestamp or now
    if before is not None and created <= before.since:
        return comebacks  # of the same lot: it was there when another of it was evicted
    times = before.times + 1 if before is not None else 1
    # A server whose clock is ahead must not make each pod of a lot another comeback.
    return {**comebacks, owner.uid: Comeback(times, max(now, created))}


def came_back(pod: Pod, start: datetime, barrier: Taint) -> bool:
    """Tell whether the pod came after the drain's ``start``, and may, as it tolerates ``barrier``.

    One that does not was only faster than the barrier: no other one follows it.
    """
    created = pod.metadata.creation_timestamp
    return created is not None and created > start and tolerates(pod.spec.tolerations, barrier)


def returns_for_ever(pod: Pod, comebacks: Comebacks, start: datetime, barrier: Taint) -> bool:
    """Tell whether to evict it would only bring another one like it."""
    owner = pod.metadata.controller_ref()
    if owner is None or (past := comebacks.get(owner.uid)) is None or past.times < MOST:
        return False
    created = pod.metadata.creation_timestamp
    return came_back(pod, start, barrier) and created is not None and created > past.since
