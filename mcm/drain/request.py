"""What a drain is asked for: which Node, until when, how hard, for whom and within which limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import final

from mcm.api.core import NodeCondition, Taint
from mcm.api.names import EFFECT_NO_SCHEDULE, TAINT_PRESERVED
from mcm.drain.selection import CORDON, ONE_WAVE, WaveSettings


class Purpose(StrEnum):
    """Why the Node is to be empty."""

    DELETION = "deletion"
    IN_PLACE_UPDATE = "in-place update"
    PRESERVATION = "preservation"
    COMMAND = "command"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long one waits for what, and for how many at once."""

    retries: int = 360
    """Each stands for 20 s that a pod may refuse to be evicted; then it is deleted. 0: no pod is
    asked, all are deleted at once."""
    detach: timedelta = timedelta(minutes=2)
    """For a volume to leave the Node, beyond its pod's grace period."""
    reattach: timedelta = timedelta(seconds=90)
    """For a volume to be attached to another Node, once it left this one."""
    lane_width: int = 1
    """Pods with exclusively attached volumes that are on their way at a time, per attacher."""
    adaptive: bool = False
    """The width grows while volumes are quick, and shrinks where they are not."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """Everything follows from what is written on objects: any process can go on with it."""

    node: str
    start: datetime
    deadline: datetime
    """Until then pods are evicted, afterwards deleted by force."""
    force_asked: bool = False
    """Somebody wants the pods deleted at once."""
    may_force: bool = True
    """False: when force would be due, the drain ends with that answer instead."""
    purpose: Purpose
    limits: Limits = Limits()
    waves: WaveSettings = ONE_WAVE
    last_conditions: Sequence[NodeCondition] = ()
    """What was seen of the Node last, for when there is none any more."""

    @property
    def barrier(self) -> Taint:
        """What keeps new pods off the Node: a pod that tolerates it may come back."""
        if self.purpose is Purpose.PRESERVATION:
            return Taint(key=TAINT_PRESERVED, effect=EFFECT_NO_SCHEDULE)
        return CORDON
