"""What one pass over a drain answers: how each pod stands, and when to look again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias, final

from mcm.drain.mode import Force


class Cause(StrEnum):
    """Why a pod is still there."""

    LEAVING = "leaving"
    """It was asked to leave, and is within its grace period."""
    HELD_BY_BUDGET = "held by a disruption budget"
    BUDGET_MISCONFIGURED = "held by a misconfigured disruption budget"
    SEVERAL_BUDGETS = "selected by several disruption budgets"
    REFUSED = "refused by the server"
    SERVER_BUSY = "the server is busy"
    NAMESPACE_ENDS = "its namespace is being deleted"
    AWAITING_LANE = "awaiting the volumes of another pod"
    AWAITING_WAVE = "awaiting the pods of an earlier wave"
    DETACHING = "its volumes are being detached"
    REATTACHING = "its volumes are being attached elsewhere"
    AWAITING_COMPLETION = "to complete by itself"
    AWAITING_SUCCESSOR = "awaiting its successor"
    OVERDUE = "its grace period is over"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PodStanding:
    """Where one pod stands. A handover outlives its pod: that may be gone by now."""

    pod: str
    """``namespace/name``."""
    uid: str
    cause: Cause
    since: datetime | None = None
    until: datetime | None = None
    """When this ends by itself, at the latest; None: not by time alone."""
    detail: str = ""
    lasting: bool = False
    """Waiting alone does not help: people have to mend it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """Under way. ``look_again`` in seconds; None: when something happens to what was looked at."""

    pods: tuple[PodStanding, ...] = ()
    look_again: float | None = None
    blind: str = ""
    """Why nothing can be observed, so that nothing is concluded; empty if all can."""


@final
@dataclass(frozen=True, slots=True)
class Quiet:
    """Empty, but not for long enough to be sure. ``look_again`` in seconds."""

    look_again: float


@final
@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to wait for. ``refusals``: pods that could not even be deleted by force."""

    force: Force = Force.NONE
    refusals: str = ""


@final
@dataclass(frozen=True, slots=True)
class TimedOut:
    """Force is due, which the request rules out. ``pods``: how they stood then."""

    pods: tuple[PodStanding, ...] = ()
    force: Force = Force.TIMEOUT


DrainResult: TypeAlias = Working | Quiet | Done | TimedOut
