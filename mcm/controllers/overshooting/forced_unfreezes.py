"""Which sets somebody unfroze a moment ago, though they may have too many machines.

A set frozen again in the same second would have had no time to make the machines it lacks. This is
the process's memory: a successor freezes such a set at once.
"""

from __future__ import annotations

from typing import final

from mcm.clock import Clock


@final
class ForcedUnfreezes:
    """Each is remembered for ``seconds``."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def note(self, key: str) -> None:
        """The set ``key`` was unfrozen by somebody, just now."""
        self._until[key] = self._clock.monotonic() + self._seconds

    def left(self, key: str) -> float:
        """Return the seconds for which the set is not frozen again; 0: it may be."""
        left = self._until.get(key, 0.0) - self._clock.monotonic()
        if left <= 0:
            self.forget(key)
        return max(0.0, left)

    def forget(self, key: str) -> None:
        self._until.pop(key, None)
