"""What a process remembers of one drain between two passes: asked when, answered what.

It is a convenience: lost in a restart, it only means to ask once more. What must not be lost is in
the record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from types import MappingProxyType
from typing import Final, final

from mcm.drain.execution import Verb
from mcm.drain.interruption import Interruption
from mcm.drain.result import Cause
from mcm.drain.selection import Remark, RemarkKind
from mcm.workqueue.backoff import Backoff, shorter_by

FIRST_RETRY: Final = 20.0
LONGEST_RETRY: Final = 180.0
_REFUSED: Final = Backoff(FIRST_RETRY, LONGEST_RETRY, spread=shorter_by(0.25))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of asking for one pod, the last time. ``_at`` are monotonic seconds."""

    verb: Verb
    tries: int
    at: float
    moment: datetime
    """The same as ``at``, as people read it."""
    accepted: bool = False
    """The server took it: the pod is on its way out."""
    lost: bool = False
    """Nobody knows whether the server took it."""
    retry_at: float = 0.0
    cause: Cause = Cause.REFUSED
    detail: str = ""
    lasting: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a change of can let the drain go on, beside the pods on its Node; all are keys."""

    budgets: frozenset[str] = frozenset()
    """Those that hold a pod."""
    claims: frozenset[str] = frozenset()
    """Those of open handovers: a successor uses one of them."""
    volumes: frozenset[str] = frozenset()


@final
class DrainMemory:
    """What is remembered of one drain, by pod UID."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._asked: dict[str, Asked] = {}
        self.began_at: float | None = None
        """When this process first looked at the Node, which was marked by then."""
        self._watched = Watched()
        self._when_watched: Callable[[Watched], None] | None = None
        self.let_go: set[str] = set()
        """The volumes that were waited for too long already."""
        self.interruption = Interruption()
        self._remarked: set[tuple[str, RemarkKind]] = set()
        self._remarks: list[str] = []

    @property
    def watched(self) -> Watched:
        """What can let the drain go on, as its last pass had it."""
        return self._watched

    @watched.setter
    def watched(self, watched: Watched) -> None:
        self._watched = watched
        if self._when_watched is not None:
            self._when_watched(watched)

    def when_watched(self, told: Callable[[Watched], None] | None) -> None:
        """Have ``told`` called with what is watched, now and at each change; None: no more."""
        self._when_watched = told
        if told is not None:
            told(self._watched)

    @property
    def asked(self) -> Mapping[str, Asked]:
        return MappingProxyType(self._asked)

    def begin(self, now: float) -> float:
        """Return when this process began with the drain: now, unless it did before."""
        if self.began_at is None:
            self.began_at = now
        return self.began_at

    def accepted(self, uid: str, verb: Verb, now: float, moment: datetime) -> None:
        """Remember that the server took the request."""
        tries = self._tries(uid, verb) + 1
        self._asked[uid] = Asked(verb=verb, tries=tries, at=now, moment=moment, accepted=True)

    def refused(self, uid: str, refusal: Asked, *, at_least: float = 0.0) -> Asked:
        """Remember a refusal, and wait longer than the last time, ``at_least`` so many seconds."""
        tries = self._tries(uid, refusal.verb) + 1
        wait = max(at_least, _REFUSED.delay(tries - 1, self._random.random()))
        self._asked[uid] = replace(refusal, tries=tries, retry_at=refusal.at + wait)
        return self._asked[uid]

    def remark(self, remark: Remark) -> None:
        """Keep it for whoever tells people, once for each pod and kind."""
        key = (remark.pod.metadata.uid, remark.kind)
        if key not in self._remarked:
            self._remarked.add(key)
            self._remarks.append(str(remark))

    def take_remarks(self) -> Sequence[str]:
        """Return what was remarked since the last time."""
        taken, self._remarks = self._remarks, []
        return taken

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget pods that are gone."""
        for uid in self._asked.keys() - set(uids):
            del self._asked[uid]

    def _tries(self, uid: str, verb: Verb) -> int:
        """Count refusals of the same request: a deletion does not wait as long as evictions did."""
        before = self._asked.get(uid)
        return before.tries if before is not None and before.verb is verb else 0
