"""When nobody is given up any more, and when again: counts and clock in, hold out.

A hold begins at once and ends by itself, once too few have been unhealthy for a while. What ends it
is only that the condition it began with is gone, so there is no number of sick machines at which it
neither begins nor ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, final

CALM: Final = 60.0
"""Seconds for which too few must have been unhealthy before a hold ends."""


@final
@dataclass(frozen=True, slots=True)
class Counts:
    """Machines that have joined and may be given up for their health; of them those that are
    ``unhealthy``, and of these the ``silent``, of which no kubelet is heard at all."""

    members: int = 0
    unhealthy: int = 0
    silent: int = 0

    @property
    def share(self) -> float:
        return self.unhealthy / self.members if self.members else 0.0


@final
@dataclass(frozen=True, slots=True)
class Threshold:
    """Nobody is given up from that ``share`` of unhealthy ones on, if they are as many as
    ``least``: of one or two machines every share is large, and says little."""

    share: float
    least: int

    def is_reached(self, counts: Counts) -> bool:
        return counts.unhealthy >= max(1, self.least) and counts.share >= self.share


@final
@dataclass(frozen=True, slots=True)
class Hold:
    """Whether giving up is held. ``calm_since`` is monotonic; health timeouts of machines that are
    unhealthy still start no earlier than ``ended_at`` (None: no bound)."""

    on: bool = False
    calm_since: float | None = None
    ended_at: datetime | None = None

    def step(self, *, reached: bool, now: datetime, monotonic: float) -> Hold:
        """Return what holds now, given whether the threshold is reached."""
        if reached:
            return replace(self, on=True, calm_since=None)
        if not self.on:
            return self
        since = monotonic if self.calm_since is None else self.calm_since
        if monotonic - since >= CALM:
            return Hold(ended_at=now)
        return replace(self, calm_since=since)

    def ends_in(self, monotonic: float) -> float | None:
        """Return the seconds after which to step again even if no count changes."""
        if self.calm_since is None:
            return None
        return max(0.0, self.calm_since + CALM - monotonic)
