"""When to ask a provider again that could not list the VMs of a class."""

from __future__ import annotations

import random as random_module
from dataclasses import dataclass
from typing import final

from mcm.driver.errors import DriverError
from mcm.workqueue.backoff import Backoff, shorter_by

_SPREAD = shorter_by(0.25)
_SOON_FIRST, _SOON_LONGEST = 5.0, 180.0
_SLOW_FIRST = 60.0


@dataclass(frozen=True, slots=True)
class _Failures:
    soon: bool
    count: int


@final
class ListRetries:
    """Failures in a row by class. What time heals is tried again soon, what somebody must mend
    slowly, but no later than after ``period`` seconds, when it would have been looked at anyway."""

    def __init__(self, *, period: float, random: random_module.Random) -> None:
        self._paces = {
            True: Backoff(min(_SOON_FIRST, period), min(_SOON_LONGEST, period), spread=_SPREAD),
            False: Backoff(min(_SLOW_FIRST, period), period, spread=_SPREAD),
        }
        self._random = random
        self._failures: dict[str, _Failures] = {}

    def failed(self, class_key: str, error: DriverError | None) -> float:
        """Count a failure; return the seconds to wait. ``error`` None: only its text is known."""
        soon = error is not None and error.code.transient
        before = self._failures.get(class_key)
        count = before.count + 1 if before is not None and before.soon is soon else 1
        self._failures[class_key] = _Failures(soon, count)
        return self._paces[soon].delay(count - 1, self._random.random())

    def is_failing(self, class_key: str) -> bool:
        return class_key in self._failures

    def forget(self, class_key: str) -> None:
        """It succeeded, or is gone."""
        self._failures.pop(class_key, None)
