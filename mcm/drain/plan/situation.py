"""What a pass is planned from, and what a plan says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.drain.budgets import Allowances
from mcm.drain.execution import Action
from mcm.drain.memory import Asked
from mcm.drain.mode import Mode
from mcm.drain.record import Record
from mcm.drain.request import DrainRequest
from mcm.drain.result import PodStanding
from mcm.drain.selection import Arrangement
from mcm.drain.snapshot import Snapshot
from mcm.drain.surge import Prepared


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All a pass looks at. ``record`` has its handovers as they stand now."""

    request: DrainRequest
    mode: Mode
    snapshot: Snapshot
    arrangement: Arrangement
    record: Record
    asked: Mapping[str, Asked]
    """What came of asking, by pod UID, as far as this process remembers."""
    allowances: Allowances
    """For this plan only: it uses them up."""
    width: Callable[[str], int]
    """How many may be on their way at a time, by attacher."""
    prepared: Prepared | None = None
    """What came of seeing to successors; None: nobody sees to any."""
    busy_for: float = 0.0
    """Seconds for which nothing is asked, as the server has too much to do."""
    evicts: bool = True
    """The server knows evictions at all."""
    now: datetime
    monotonic: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PassPlan:
    """Every pod that the drain waits for is in exactly one of ``actions`` and ``standings``."""

    actions: tuple[Action, ...] = ()
    standings: tuple[PodStanding, ...] = ()
    record: Record
    held_by: frozenset[str] = frozenset()
    """The keys of the budgets that hold a pod."""
    look_again: float | None = None
    """In seconds; None: when something happens to what was looked at."""

    @property
    def finished(self) -> bool:
        """Nothing is left to take away or to wait for."""
        return not self.actions and not self.standings
