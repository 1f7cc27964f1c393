"""How long a drain leaves a server alone that has too much to do: the whole drain, not one pod."""

from __future__ import annotations

import random as random_module
from dataclasses import dataclass
from typing import Final, final

from mcm.workqueue.backoff import Backoff, longer_by

_BACKOFF: Final = Backoff(1.0, 60.0, spread=longer_by(0.5))


@final
@dataclass(frozen=True, slots=True)
class _Pause:
    rounds: int
    until: float


@final
class BusyServer:
    """By drain: a server's fairness parts users and requests, so that one drain may be refused
    while others are not. Times are monotonic seconds."""

    def __init__(self, random: random_module.Random) -> None:
        self._random = random
        self._pauses: dict[str, _Pause] = {}

    def wait(self, drain: str, now: float) -> float:
        """Return for how many seconds the drain asks nothing more; 0: it may."""
        pause = self._pauses.get(drain)
        return max(0.0, pause.until - now) if pause is not None else 0.0

    def refused(self, drain: str, now: float, *, retry_after: float) -> None:
        """A round of requests met a busy server, which wants to be left alone for so long."""
        self._pauses = {name: p for name, p in self._pauses.items() if now < p.until + 60.0}
        before = self._pauses.get(drain)
        rounds = before.rounds + 1 if before is not None else 1
        delay = _BACKOFF.delay(rounds - 1, self._random.random())
        # Whatever it asks for, longer each time, so that many drains do not come back at once.
        wait = delay + max(0.0, retry_after - _BACKOFF.length(rounds - 1))
        self._pauses[drain] = _Pause(rounds, now + wait)

    def served(self, drain: str) -> None:
        """A round of requests was answered."""
        self._pauses.pop(drain, None)
