"""How long to wait after the n-th failure in a row."""

from __future__ import annotations

import random as random_module
from typing import final


@final
class Backoff:
    """Exponential with full jitter: the n-th step is uniform in [0, min(cap, base * 2^n)] seconds.

    Many clients that failed together thus come back spread over the whole step.
    """

    __slots__ = ("_base", "_cap", "_random", "failures")

    def __init__(self, *, base: float, cap: float, randomness: random_module.Random) -> None:
        self._base = base
        self._cap = cap
        self._random = randomness
        self.failures = 0

    def step(self, *, at_least: float | None = None) -> float:
        """Count a failure; return the wait. ``at_least`` is a floor (a server's Retry-After)."""
        # 2**32 is beyond any cap; the exponent must not grow with an outage's length.
        ceiling = min(self._cap, self._base * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return max(self._random.uniform(0.0, ceiling), at_least or 0.0)

    def reset(self) -> None:
        self.failures = 0
