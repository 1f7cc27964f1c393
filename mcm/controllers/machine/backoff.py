"""How long to leave a machine's failed call alone: longer each time, and never in step.

The memory is of this process only: after a restart everything is tried once at once. What a user
mends is tried at once too, as each failure remembers under which circumstances it came.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from mcm.driver.codes import Code
from mcm.driver.errors import DriverError
from mcm.workqueue.backoff import Backoff, longer_by, shorter_by


class Pace(Enum):
    """Kinds of failures, by what makes them go away."""

    TRANSIENT = "transient"
    """Time, probably soon."""
    LASTING = "lasting"
    """Somebody who mends something."""
    EXHAUSTED = "exhausted"
    """Quota or capacity that becomes free."""


def pace_of(error: DriverError | None) -> Pace:
    """Say how soon to try again; None: nothing is known of the answer but its text."""
    if error is None:
        return Pace.LASTING
    if error.code is Code.RESOURCE_EXHAUSTED:
        return Pace.EXHAUSTED
    return Pace.TRANSIENT if error.code.transient else Pace.LASTING


_SPREAD: Final = shorter_by(0.25)
TRANSIENT: Final = Backoff(5.0, 180.0, spread=_SPREAD)
LASTING: Final = Backoff(30.0, 600.0, spread=_SPREAD)


@dataclass(frozen=True, slots=True)
class _Failures:
    pace: Pace
    count: int
    retry_at: float
    circumstances: Hashable


@final
class MachineBackoff:
    """Failures by machine. Times are monotonic seconds; ``exhausted`` is the least wait
    for quota or capacity."""

    def __init__(self, *, exhausted: float, random: random_module.Random) -> None:
        self._paces = {
            Pace.TRANSIENT: TRANSIENT,
            Pace.LASTING: LASTING,
            Pace.EXHAUSTED: Backoff(exhausted, exhausted, spread=longer_by(0.25)),
        }
        self._random = random
        self._failures: dict[str, _Failures] = {}

    def __len__(self) -> int:
        return len(self._failures)

    def failed(self, key: str, pace: Pace, now: float, *, circumstances: Hashable = None) -> float:
        """Count a failure; return the seconds to wait before the next attempt."""
        before = self._failures.get(key)
        same = before is not None and before.pace is pace and before.circumstances == circumstances
        count = before.count + 1 if same and before is not None else 1
        delay = self._paces[pace].delay(count - 1, self._random.random())
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
