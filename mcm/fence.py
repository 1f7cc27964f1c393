"""The fence before everything that acts: API writes and provider calls alike ask it first.

It stands as long as the leases are ours. Who may act now need not be allowed to in a moment, so it
also says for how long; it reads clocks, no flags, and so holds after a blocked loop, too.
"""

from __future__ import annotations

import math
from typing import Protocol, final


class Fence(Protocol):
    """Passed by everything that changes something outside this process."""

    def check(self) -> None:
        """Raise (LeadershipLost) unless we may act now. Never waits."""
        ...

    def time_left(self) -> float:
        """Return the seconds for which we may act if nothing is renewed; 0 if we may not."""
        ...


@final
class Unfenced:
    """For whoever contends with nobody: always open."""

    def check(self) -> None:
        """Let everything pass."""

    def time_left(self) -> float:
        """Return infinity."""
        return math.inf
