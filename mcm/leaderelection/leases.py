"""Several leases as one fence: what acts needs them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

from mcm.leaderelection.elector import LeaderElector


@final
class AllLeases:
    """A :class:`mcm.fence.Fence` that is open while every elector leads (and if there is none)."""

    def __init__(self, electors: Sequence[LeaderElector]) -> None:
        self._electors = tuple(electors)

    def check(self) -> None:
        """Raise LeadershipLost for the first lease that is not ours."""
        for elector in self._electors:
            elector.fence()

    def time_left(self) -> float:
        """Return the seconds until the first lease must have been renewed."""
        return min((elector.time_left() for elector in self._electors), default=math.inf)
