"""How long a pod may take for what: to end, to refuse, and until it is asked another way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, final

from mcm.api.core import Pod
from mcm.drain.memory import Asked
from mcm.drain.pods import grace_of
from mcm.drain.record import Record
from mcm.drain.request import Limits
from mcm.drain.volumes import Handover, Stage

GRACE_BUFFER: Final = timedelta(seconds=30)
"""What a pod may need beyond its grace period before it counts as overdue."""
EVICTION_INTERVAL: Final = timedelta(seconds=20)
"""What one of the allowed retries stands for."""
UNSEEN_FOR: Final = timedelta(minutes=2)
"""After an accepted request without a sign of it in a mirror that is current, one asks again."""


@final
@dataclass(frozen=True, slots=True)
class Leaving:
    """A pod that was asked to go. ``overdue``: it should have gone by now; ``until`` is past."""

    since: datetime
    until: datetime
    overdue: bool = False


def leaving(
    pod: Pod, asked: Asked | None, handover: Handover | None, now: datetime, monotonic: float
) -> Leaving | None:
    """Tell whether the pod is on its way out; None: it is not, or nothing came of it."""
    ends = pod.metadata.deletion_timestamp  # already counts the grace period
    if ends is not None:
        until = ends + GRACE_BUFFER
        return Leaving(min(now, ends - grace_of(pod)), until, overdue=now >= until)
    if asked is not None:
        if not asked.accepted or monotonic - asked.at >= UNSEEN_FOR.total_seconds():
            return None
        return Leaving(asked.moment, asked.moment + UNSEEN_FOR)
    if handover is not None and handover.stage is Stage.ASKED:
        # Another process asked: the mirror shows it in a moment.
        until = handover.asked_at + UNSEEN_FOR
        return Leaving(handover.asked_at, until) if now < until else None
    return None


def patience_ends(since: datetime, limits: Limits) -> datetime:
    """Return when a pod that is held, or refuses, ``since`` then is deleted instead."""
    return since + limits.retries * EVICTION_INTERVAL


def patience_is_over(pod: Pod, record: Record, limits: Limits, now: datetime) -> bool:
    """Tell whether the pod has refused to go for as long as its retries stand for: it is deleted
    then, whatever budgets say."""
    if limits.retries <= 0:
        return True
    since = record.held_since.get(pod.metadata.uid)
    return since is not None and now >= patience_ends(since, limits)
