"""What is remembered of a drain to tell of it: what pods did between passes, what was told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import final

from mcm.drain.memory import Asked
from mcm.drain.request import Purpose
from mcm.drain.result import PodStanding


@final
@dataclass(slots=True)
class DrainWatch:
    """Of one drain, for as long as it is under way. A restart loses it: things may be told again,
    and some durations are not counted."""

    purpose: Purpose
    pods: tuple[PodStanding, ...] = ()
    """How pods stood after the last pass."""
    shown_at: datetime | None = None
    """When the condition was last written."""
    told: set[str] = field(default_factory=set)
    """What was told as events."""
    _asked: Mapping[str, Asked] = field(default_factory=dict)

    def durations(
        self, asked: Mapping[str, Asked], held_since: Mapping[str, datetime], now: datetime
    ) -> Durations:
        """Take what was asked by now, by pod UID; pods that are not there any more are gone."""
        before, self._asked = self._asked, dict(asked)
        left = (
            (now - known.moment).total_seconds()
            for uid, known in before.items()
            if known.accepted and uid not in asked
        )
        held = (
            (known.moment - held_since[uid]).total_seconds()
            for uid, known in asked.items()
            if known.accepted and uid in held_since and not _is_accepted(before.get(uid))
        )
        return Durations(left=tuple(left), held=tuple(held))


@final
@dataclass(frozen=True, slots=True)
class Durations:
    """In seconds: of pods that are ``left``, and of those ``held`` that were accepted now."""

    left: tuple[float, ...]
    held: tuple[float, ...]


def _is_accepted(known: Asked | None) -> bool:
    return known is not None and known.accepted
