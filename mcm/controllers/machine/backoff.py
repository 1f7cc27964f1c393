"""How long to leave a provider alone after it failed: longer each time, and never in step.

The memory is of this process only: after a restart everything is tried once at once. What a user
mends is tried at once too, as each failure remembers under which circumstances it came.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import final


class Pace(Enum):
    """Kinds of failures, by what makes them go away."""

    TRANSIENT = "transient"
    """Time, probably soon."""
    LASTING = "lasting"
    """Somebody who mends something."""
    EXHAUSTED = "exhausted"
    """Quota or capacity that becomes free."""


_FIRST = {Pace.TRANSIENT: 5.0, Pace.LASTING: 30.0, Pace.EXHAUSTED: 30.0}
_LONGEST = {Pace.TRANSIENT: 180.0, Pace.LASTING: 600.0}
_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class _Failures:
    pace: Pace
    count: int
    retry_at: float
    circumstances: Hashable


@final
class Backoff:
    """Failures by key. Times are monotonic seconds; ``exhausted`` is the longest wait for quota."""

    def __init__(self, *, exhausted: float, random: random_module.Random) -> None:
        self._longest = {**_LONGEST, Pace.EXHAUSTED: exhausted}
        self._random = random
        self._failures: dict[str, _Failures] = {}

    def __len__(self) -> int:
        return len(self._failures)

    def failed(self, key: str, pace: Pace, now: float, *, circumstances: Hashable = None) -> float:
        """Count a failure; return the seconds to wait before the next attempt."""
        before = self._failures.get(key)
        same = before is not None and before.pace is pace and before.circumstances == circumstances
        count = before.count + 1 if same and before is not None else 1
        delay = self._delay(pace, count)
        self._failures[key] = _Failures(pace, count, now + delay, circumstances)
        return delay

    def wait(self, key: str, now: float, *, circumstances: Hashable = None) -> float:
        """Return the seconds still to wait; 0 if it may be tried, as when circumstances changed."""
        failures = self._failures.get(key)
        if failures is None or failures.circumstances != circumstances:
            return 0.0
        return max(0.0, failures.retry_at - now)

    def count(self, key: str) -> int:
        failures = self._failures.get(key)
        return failures.count if failures else 0

    def forget(self, key: str) -> None:
        """It succeeded, or is gone."""
        self._failures.pop(key, None)

    def _delay(self, pace: Pace, count: int) -> float:
        longest = self._longest[pace]
        # Beyond 2^32 every cap is reached; the exponent must not overflow a float.
        grown = _FIRST[pace] * 2.0 ** min(count - 1, 32)
        return min(longest, grown) * (1 - _SPREAD * self._random.random())
