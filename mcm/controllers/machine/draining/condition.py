"""The machine's condition ``Drained``: what its drain waits for, since when, and what ends it.

False for one of the reasons of :class:`DrainReason`, True once the Node is empty. A drain that goes
its way in a few seconds shows none at all, and one whose pods merely become fewer is written about
now and then: each write costs a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, final

import msgspec

from mcm.api.machine import MachineStatus
from mcm.api.names import REASON_DRAIN_BLOCKED, STATUS_FALSE, STATUS_TRUE
from mcm.api.timestamps import rfc3339
from mcm.controllers.conditions import without
from mcm.controllers.machine.own_conditions import (
    OwnCondition,
    find_own,
    with_own,
    without_own,
)
from mcm.drain.mode import Force
from mcm.drain.result import Cause, Done, DrainResult, PodStanding, Quiet, TimedOut, Working
from mcm.drain.summary import in_words

USUAL: Final = timedelta(seconds=10)
"""A drain may take so long before anything is said of it."""
HELD_UP_AFTER: Final = timedelta(minutes=5)
"""From then on a pod that is held, or that does not end, holds the drain up."""
REWRITTEN_AFTER: Final = timedelta(seconds=30)
"""How often other pods alone are worth a write."""

_HOLDING: Final = frozenset(
    {
        Cause.BUDGET_MISCONFIGURED,
        Cause.SEVERAL_BUDGETS,
        Cause.REFUSED,
        Cause.OVERDUE,
        Cause.HELD_BY_BUDGET,
        Cause.SERVER_BUSY,
        Cause.NAMESPACE_ENDS,
    }
)
"""What should pass, and holds the drain up if it does not. All else has a limit of its own, or is
what somebody asked for."""

FORCE_IN_WORDS: Final = {
    Force.NONE: "",
    Force.LABEL: "as a label asks for it",
    Force.TIMEOUT: "as the drain's time was over",
    Force.NODE_NOT_READY: "as the node was not ready for more than five minutes",
    Force.READONLY_FILESYSTEM: "as the node's file system was read-only for more than five minutes",
}


class DrainReason(StrEnum):
    """Why the condition is False."""

    DRAINING = "Draining"
    """Under way, for longer than usual."""
    BLOCKED = REASON_DRAIN_BLOCKED
    """A pod cannot go before somebody mends something, or was held for minutes."""
    CANNOT_OBSERVE = "CannotObserve"
    """What is on the Node is not known, so that nothing is concluded."""
    OVERDUE = "Overdue"
    """A pod should have ended by now."""
    FORCED = "Forced"
    """Pods were deleted by force."""


@final
@dataclass(frozen=True, slots=True)
class DrainVerdict:
    """What there is to say of a drain under way."""

    reason: DrainReason
    message: str


@final
@dataclass(frozen=True, slots=True)
class DrainShown:
    """``status`` as it is to be; in ``again`` seconds there is more to say, though nothing happens
    (None: there is not)."""

    status: MachineStatus
    again: float | None = None


def shown(
    status: MachineStatus,
    result: DrainResult,
    *,
    start: datetime,
    deadline: datetime,
    now: datetime,
    told_at: datetime | None,
) -> DrainShown:
    """Show what a pass came to on ``status``, the same object if that is what it says already.

    ``told_at``: when the condition was last written by this process; None: it was not.
    """
    if isinstance(result, Quiet):
        return DrainShown(status)  # empty, and soon done
    if isinstance(result, Done) and result.force is Force.NONE:
        return DrainShown(finished(status, now))
    verdict = verdict_of(result, deadline=deadline, now=now)
    before = find_own(status, OwnCondition.DRAINED)
    if before is None and verdict.reason is DrainReason.DRAINING and now - start < USUAL:
        return DrainShown(status, (start + USUAL - now).total_seconds())
    if before is not None and before.status == STATUS_FALSE and before.reason == verdict.reason:
        wait = _until(told_at, now)
        if wait and before.message != verdict.message:
            return DrainShown(status, wait)
    changed = with_own(
        status, OwnCondition.DRAINED, STATUS_FALSE, verdict.reason, verdict.message, now
    )
    return DrainShown(changed, _seconds_until_held_up(result, now))


def finished(status: MachineStatus, now: datetime) -> MachineStatus:
    """Say that the Node is empty, where anything was said before."""
    if find_own(status, OwnCondition.DRAINED) is None:
        return status
    return with_own(status, OwnCondition.DRAINED, STATUS_TRUE, "Drained", "", now)


def withdrawn(status: MachineStatus) -> MachineStatus:
    """Say nothing any more: the machine lives on."""
    return without_own(status, OwnCondition.DRAINED)


def carried_over(status: MachineStatus, shown: MachineStatus) -> MachineStatus:
    """Have ``status`` say of the drain what ``shown`` does."""
    said = find_own(shown, OwnCondition.DRAINED)
    if said is None:
        return withdrawn(status)
    if find_own(status, OwnCondition.DRAINED) == said:
        return status
    others = without(status.conditions, OwnCondition.DRAINED)
    return msgspec.structs.replace(status, conditions=(*others, said))


def verdict_of(
    result: Working | Done | TimedOut, *, deadline: datetime, now: datetime
) -> DrainVerdict:
    """Judge a pass that did not find the Node empty."""
    match result:
        case Done():
            return DrainVerdict(DrainReason.FORCED, _forced(result.force, result.refusals))
        case TimedOut():
            left = in_words(result.pods, deadline=deadline)
            return DrainVerdict(DrainReason.FORCED, _forced(result.force, left))
        case Working():
            return _working(result, deadline, now)


def is_held_up_by(pod: PodStanding, now: datetime) -> bool:
    """Tell whether the drain does not go on by itself because of ``pod``."""
    if pod.lasting:
        return True
    if pod.cause not in _HOLDING or pod.since is None:
        return False
    return now - pod.since >= HELD_UP_AFTER


def _working(result: Working, deadline: datetime, now: datetime) -> DrainVerdict:
    end = f"pods are deleted by force at {rfc3339(deadline)}"
    if result.blind:
        text = f"{result.blind}: what is on the node is not known, and nothing is concluded; {end}"
        return DrainVerdict(DrainReason.CANNOT_OBSERVE, text)
    pods = in_words(result.pods, deadline=deadline)
    return DrainVerdict(_reason(result.pods, now), f"{pods}; {end}" if pods else end)


def _reason(pods: Iterable[PodStanding], now: datetime) -> DrainReason:
    pods = tuple(pods)
    if any(is_held_up_by(pod, now) for pod in pods):
        return DrainReason.BLOCKED
    if any(pod.cause is Cause.OVERDUE for pod in pods):
        return DrainReason.OVERDUE
    return DrainReason.DRAINING


def _forced(force: Force, left: str) -> str:
    text = f"pods were deleted by force, {FORCE_IN_WORDS[force]}"
    return f"{text}; {left}" if left else text


def _until(told_at: datetime | None, now: datetime) -> float:
    if told_at is None:
        return 0.0
    # A clock that was set back must not silence us for longer.
    left = min(told_at + REWRITTEN_AFTER - now, REWRITTEN_AFTER)
    return max(0.0, left.total_seconds())


def _seconds_until_held_up(result: DrainResult, now: datetime) -> float | None:
    if not isinstance(result, Working):
        return None
    waits = (
        (pod.since + HELD_UP_AFTER - now).total_seconds()
        for pod in result.pods
        if pod.cause in _HOLDING and pod.since is not None and not is_held_up_by(pod, now)
    )
    return min(waits, default=None)
