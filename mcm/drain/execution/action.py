"""What may be asked of the server for one pod: its eviction, or its deletion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import final

from mcm.api.core import Pod


class Verb(Enum):
    EVICT = auto()
    DELETE = auto()


class Step(StrEnum):
    """How hard a request is, as logs, events and metrics name it."""

    EVICT = "evict"
    DELETE = "delete"
    """With the pod's own grace period."""
    DELETE_CLAMPED = "delete with clamped grace"
    DELETE_AT_ONCE = "delete without grace"


@final
@dataclass(frozen=True, slots=True)
class Action:
    """One request for one pod. ``grace`` in seconds; None leaves it to the pod."""

    verb: Verb
    pod: Pod
    grace: int | None = None

    @property
    def step(self) -> Step:
        if self.verb is Verb.EVICT:
            return Step.EVICT
        if self.grace is None:
            return Step.DELETE
        return Step.DELETE_CLAMPED if self.grace > 0 else Step.DELETE_AT_ONCE
