"""What of a drain is worth an event: pure, and once for each thing that happens to it.

Blocked, by cause; the first pod that is deleted as it refused to be evicted; that the deadline is
near; how long it took. What follows by itself, or was told, is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, final

from mcm.api.core import NodeCondition
from mcm.api.timestamps import rfc3339
from mcm.controllers.machine.draining.condition import USUAL
from mcm.drain.request import DrainRequest
from mcm.drain.result import Cause, PodStanding
from mcm.drain.summary import MOST_PODS, WORST_FIRST, in_words
from mcm.events import EventType
from mcm.wording import first_few

PATIENCE: Final = timedelta(minutes=1)
"""A pod that is held for longer is worth an event; for less is how budgets work."""
_LONGEST_WARNING: Final = timedelta(minutes=10)
_HELD: Final = frozenset(
    {Cause.HELD_BY_BUDGET, Cause.REFUSED, Cause.SERVER_BUSY, Cause.NAMESPACE_ENDS}
)
_DELETED: Final = "deleted"
_NEAR: Final = "deadline"


@final
@dataclass(frozen=True, slots=True)
class News:
    """An event. ``key`` is what it is about, of which there is no second one."""

    key: str
    kind: EventType
    reason: str
    note: str


def news_of(
    pods: Collection[PodStanding],
    deleted: Collection[str],
    request: DrainRequest,
    told: Collection[str],
    now: datetime,
) -> tuple[News, ...]:
    """Return what is to be told of a pass after which ``pods`` are left; ``deleted`` are the UIDs
    of those that refused eviction for too long."""
    found = (*_blocked(pods, request, now), *_escalated(pods, deleted), *_near(pods, request, now))
    return tuple(news for news in found if news.key not in told)


def again_at(
    pods: Collection[PodStanding], request: DrainRequest, told: Collection[str], now: datetime
) -> datetime | None:
    """Return when there is something to tell though nothing happens; None: never."""
    moments = [
        pod.since + PATIENCE
        for pod in pods
        if pod.cause in _HELD and pod.since is not None and pod.cause.value not in told
    ]
    if pods and _NEAR not in told:
        moments.append(warned_at(request))
    return min((moment for moment in moments if moment > now), default=None)


def told_before(condition: NodeCondition | None) -> set[str]:
    """Return what another process told of, judged by what it wrote on the machine."""
    message = condition.message if condition is not None else ""
    return {cause.value for cause in Cause if f"{cause.value}: " in message}


def ended(request: DrainRequest, told: Collection[str], now: datetime) -> tuple[News, ...]:
    """Return what is to be told of a drain that emptied its Node: nothing, if it was quick."""
    lasted = now - request.start
    if not told and lasted <= USUAL:
        return ()
    seconds = timedelta(seconds=max(0, round(lasted.total_seconds())))
    return (News("ended", EventType.NORMAL, "Drained", f"The node is empty, after {seconds}"),)


def warned_at(request: DrainRequest) -> datetime:
    """Return when people are warned of the deadline: in time, also where that is short."""
    return request.deadline - min(_LONGEST_WARNING, (request.deadline - request.start) / 5)


def _blocked(pods: Iterable[PodStanding], request: DrainRequest, now: datetime) -> Iterable[News]:
    by_cause: dict[Cause, list[PodStanding]] = {}
    for pod in pods:
        if _is_blocked(pod, now):
            by_cause.setdefault(pod.cause, []).append(pod)
    for cause in WORST_FIRST:
        if cause in by_cause:
            note = in_words(by_cause[cause], deadline=request.deadline)
            yield News(cause.value, EventType.WARNING, "DrainBlocked", note)


def _escalated(pods: Iterable[PodStanding], deleted: Collection[str]) -> Iterable[News]:
    names = sorted(pod.pod for pod in pods if pod.uid in deleted)
    if names:
        shown = first_few(names, MOST_PODS)
        note = f"Pods that refused eviction for too long are deleted: {shown}"
        yield News(_DELETED, EventType.WARNING, "DrainEscalated", note)


def _near(pods: Collection[PodStanding], request: DrainRequest, now: datetime) -> Iterable[News]:
    if pods and now >= warned_at(request):
        left = in_words(pods, deadline=request.deadline)
        note = f"Pods are deleted by force at {rfc3339(request.deadline)}: {left}"
        yield News(_NEAR, EventType.WARNING, "DrainDeadlineNear", note)


def _is_blocked(pod: PodStanding, now: datetime) -> bool:
    if pod.lasting or pod.cause is Cause.OVERDUE:
        return True
    return pod.cause in _HELD and pod.since is not None and now - pod.since >= PATIENCE
