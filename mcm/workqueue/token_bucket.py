"""How many may go at once, and how many a second after that, told the time."""

from __future__ import annotations

import math
from typing import final

_ROUNDING = 1e-9
"""Of a token: what is missing through rounding alone is not missing."""


@final
class TokenBucket:
    """``rate`` tokens a second, at most ``burst`` saved up; full at first. Times are monotonic
    seconds, and one that goes back counts as no time.

    Raises ValueError unless rate > 0 and burst >= 1.
    """

    __slots__ = ("_burst", "_filled_at", "_rate", "_tokens")

    def __init__(self, *, rate: float, burst: float) -> None:
        if not rate > 0 or burst < 1:
            raise ValueError(f"need rate > 0 and burst >= 1, got rate={rate}, burst={burst}")
        self._rate = rate
        self._burst = float(burst)
        self._tokens = self._burst
        self._filled_at = -math.inf

    def take(self, now: float) -> bool:
        """Take a token if there is one, and tell whether there was."""
        self._fill(now)
        if self._tokens < 1.0 - _ROUNDING:
            return False
        self._tokens -= 1.0
        return True

    def reserve(self, now: float) -> float:
        """Take the next token, there or not; return the seconds until it is (0: at once).

        Reservations are served in order: the n-th that finds nothing waits for the n-th new token.
        """
        self._fill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate)

    def give_back(self) -> None:
        """Return a reserved token that was never used."""
        self._tokens = min(self._burst, self._tokens + 1.0)

    def _fill(self, now: float) -> None:
        gained = max(0.0, now - self._filled_at) * self._rate
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled_at = max(self._filled_at, now)
