"""Are the API servers reachable, and since when: a state machine fed by probes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Reachability:
    """What holds now. Health timeouts start no earlier than ``restored_at`` (None: no bound).

    ``only_target_lost``: of what is out of reach nothing is the control cluster's.
    """

    reachable: bool = True
    restored_at: datetime | None = None
    only_target_lost: bool = False


def no_earlier_than(servers: Reachability, moment: datetime | None) -> Reachability:
    """Return ``servers`` with health timeouts that start no earlier than ``moment``, either."""
    if moment is None or (servers.restored_at is not None and servers.restored_at >= moment):
        return servers
    return replace(servers, restored_at=moment)


@final
class ReachabilityState:
    """Takes the answers of one or two clusters together.

    An outage of up to ``tolerance`` seconds leaves the health timeouts alone.
    """

    def __init__(self, *, tolerance: float) -> None:
        self._tolerance = tolerance
        self._unreachable_since: float | None = None
        self._now = Reachability()

    @property
    def reachability(self) -> Reachability:
        return self._now

    def answered(self, *, now: datetime, monotonic: float) -> bool:
        """All clusters answered; tell whether timeouts were restarted."""
        since, self._unreachable_since = self._unreachable_since, None
        if since is None or monotonic - since < self._tolerance:
            self._now = Reachability(restored_at=self._now.restored_at)
            return False
        self._now = Reachability(restored_at=now)
        return True

    def missed(self, *, monotonic: float, only_target: bool = False) -> None:
        """A cluster did not answer. Destruction stops at once; only timeouts are tolerant."""
        if self._unreachable_since is None:
            self._unreachable_since = monotonic
        self._now = Reachability(
            reachable=False, restored_at=self._now.restored_at, only_target_lost=only_target
        )
