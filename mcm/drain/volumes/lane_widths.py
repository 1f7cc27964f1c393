"""How many handovers an attacher is trusted with at a time, learned from those that are over."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, auto
from typing import Final, final

from mcm.drain.request import Limits
from mcm.drain.volumes.handover import Handover, Stage

WIDEST: Final = 8
QUICK: Final = timedelta(seconds=15)
"""From the end of a pod to the end of its volumes' attachment: a cloud that is not busy."""


class Lesson(Enum):
    """What one handover says of its attachers."""

    QUICK = auto()
    SLOW = auto()
    """Neither a reason to trust them with more nor to trust them with less."""
    FAILED = auto()


def next_width(width: int, lesson: Lesson) -> int:
    """Grow by one, stay, or begin anew."""
    match lesson:
        case Lesson.QUICK:
            return min(WIDEST, width + 1)
        case Lesson.SLOW:
            return width
        case Lesson.FAILED:
            return 1


def lesson_of(before: Handover, after: Handover) -> Lesson | None:
    """Tell what two states of one handover, one after the other, teach; None: nothing new."""
    if after.error and after.error != before.error:
        return Lesson.FAILED
    if after.blamed and not before.blamed:
        return Lesson.FAILED
    if before.stage in (Stage.ASKED, Stage.GONE) and after.detached_at is not None:
        gone_at = after.gone_at or after.detached_at
        return Lesson.QUICK if after.detached_at - gone_at < QUICK else Lesson.SLOW
    return None


@final
class LaneWidths:
    """The widths of the whole process, by attacher. A restart begins anew: it only is slower."""

    def __init__(self) -> None:
        self._learned: dict[str, int] = {}

    def of(self, attacher: str, limits: Limits) -> int:
        """Return the width of a lane: never below the one that was asked for."""
        if not limits.adaptive:
            return limits.lane_width
        return max(limits.lane_width, self._learned.get(attacher, 1))

    def learn(self, before: Handover, after: Handover) -> None:
        lesson = lesson_of(before, after)
        if lesson is None:
            return
        for attacher in after.attachers:
            self._learned[attacher] = next_width(self._learned.get(attacher, 1), lesson)
