"""What a drain remembers of its pods between two passes: asked when, answered what.

It is a convenience, not a record: lost in a restart, it only means to ask once more.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from mcm.workqueue.backoff import Backoff, shorter_by

FIRST_RETRY = 20.0
LONGEST_RETRY = 180.0
_OBSTACLE_RETRY = 60.0
"""Seconds, the first wait for a pod which cannot go however long one waits."""
_REFUSED = Backoff(FIRST_RETRY, LONGEST_RETRY, spread=shorter_by(0.25))
_OBSTRUCTED = Backoff(_OBSTACLE_RETRY, LONGEST_RETRY, spread=shorter_by(0.25))


@final
@dataclass(frozen=True, slots=True)
class Attempt:
    """Times are monotonic seconds."""

    first_at: float
    tries: int = 0
    retry_at: float = 0.0
    refusal: str = ""
    obstructed: bool = False
    """No waiting will help; the refusal says what would."""
    budgets: tuple[str, ...] = ()
    """The versions of the pod's budgets when it was refused."""
    accepted_at: float | None = None
    """The server took the eviction or deletion; the pod is on its way out."""


@final
class Attempts:
    """The attempts of one drain, by pod UID."""

    def __init__(self, random: random_module.Random) -> None:
        self._random = random
        self._by_uid: dict[str, Attempt] = {}

    def view(self) -> Mapping[str, Attempt]:
        return MappingProxyType(self._by_uid)

    def accepted(self, uid: str, now: float) -> None:
        before = self._by_uid.get(uid)
        first = before.first_at if before else now
        tries = before.tries + 1 if before else 1
        self._by_uid[uid] = Attempt(first_at=first, tries=tries, accepted_at=now)

    def refused(
        self,
        uid: str,
        now: float,
        refusal: str,
        *,
        budgets: tuple[str, ...] = (),
        obstructed: bool = False,
        at_least: float = 0.0,
    ) -> None:
        """Remember a refusal, and wait longer than the last time, ``at_least`` so many seconds."""
        before = self._by_uid.get(uid)
        tries = before.tries + 1 if before else 1
        self._by_uid[uid] = Attempt(
            first_at=before.first_at if before else now,
            tries=tries,
            retry_at=now + max(at_least, self._delay(tries, obstructed=obstructed)),
            refusal=refusal,
            obstructed=obstructed,
            budgets=budgets,
        )

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget pods that are gone."""
        for uid in self._by_uid.keys() - set(uids):
            del self._by_uid[uid]

    def _delay(self, tries: int, *, obstructed: bool) -> float:
        backoff = _OBSTRUCTED if obstructed else _REFUSED
        return backoff.delay(tries - 1, self._random.random())
