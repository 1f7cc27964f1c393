"""What keeps machines from being created, and since when: what nothing on them tells by itself.

The memory is of this process only: it makes texts better, no decision depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import final


class ObstacleKind(StrEnum):
    """As long as the kind stays the same, it is the same obstacle, whatever its text says."""

    INPUTS = "inputs"
    CLASS_UNPROTECTED = "class unprotected"
    BACKOFF = "backoff"
    PLACE = "place"
    PROVIDER = "provider"
    TOKEN = "token"
    REQUEST = "request"


@final
@dataclass(frozen=True, slots=True)
class Obstacle:
    """``text`` is a sentence without its end: what is waited for, and what helps."""

    kind: ObstacleKind
    text: str
    since: datetime


@final
class Obstacles:
    """The present obstacle of each machine that has one, by UID."""

    def __init__(self) -> None:
        self._of: dict[str, Obstacle] = {}

    def met(self, uid: str, kind: ObstacleKind, text: str, now: datetime) -> Obstacle:
        """Record what ``uid`` is stuck at; return it, with the time since when."""
        before = self._of.get(uid)
        since = before.since if before is not None and before.kind is kind else now
        obstacle = self._of[uid] = Obstacle(kind, text, since)
        return obstacle

    def of(self, uid: str) -> Obstacle | None:
        return self._of.get(uid)

    def forget(self, uid: str) -> None:
        """It is passed, or the machine is gone."""
        self._of.pop(uid, None)
