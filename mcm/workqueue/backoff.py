"""How long to wait after the n-th failure in a row: growing, bounded, spread by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, final

Spread: TypeAlias = tuple[float, float]
"""Between which multiples of its length a wait is drawn."""

EXACT: Final[Spread] = (1.0, 1.0)

FULL: Final[Spread] = (0.0, 1.0)
"""Full jitter: many that failed together come back spread over the whole wait."""


def longer_by(part: float) -> Spread:
    """Waits are up to ``part`` of their length longer: never sooner than the rule says."""
    return 1.0, 1.0 + part


def shorter_by(part: float) -> Spread:
    """Waits are up to ``part`` of their length shorter: never longer than the rule says."""
    return 1.0, 1.0 - part


@final
@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential: ``first`` seconds, then ``factor`` times as long each time, at most ``longest``.

    Immutable: who waits counts its failures in a row itself. Raises ValueError unless
    0 < first <= longest, factor >= 1 and no wait can be negative.
    """

    first: float
    longest: float
    factor: float = 2.0
    spread: Spread = EXACT

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.longest:
            raise ValueError(f"need 0 < first <= longest, got {self.first} and {self.longest}")
        if self.factor < 1 or min(self.spread) < 0:
            raise ValueError(f"need factor >= 1, spread >= 0, got {self.factor}, {self.spread}")

    def delay(self, failures: int, chance: float = 0.0) -> float:
        """Return the seconds to wait after a failure that ``failures`` others came before.

        ``chance`` in [0, 1) chooses within the spread; 0 is the spread's first end.
        """
        begin, end = self.spread
        return self.length(failures) * (begin + (end - begin) * chance)

    def length(self, failures: int) -> float:
        """Return the same before it is spread. However long an outage lasts, it is a number."""
        try:
            return min(self.longest, self.first * self.factor**failures)
        except OverflowError:
            return self.longest
