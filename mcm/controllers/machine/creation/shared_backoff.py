"""What one machine was refused the others of its class and zone need not ask for: who may try.

A refusal that concerns the class (no quota, bad credentials) holds the whole group. One machine at
a time then tries again, after a wait; the others wait for what becomes of it. As soon as one
succeeds, two may try, then four, and so on.

State and decisions only: times are arguments, and whoever may go on is woken by its key. The memory
is of this process only, at most one entry for each class and zone.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple, final

from mcm.controllers.machine.backoff import LASTING, TRANSIENT, Pace
from mcm.driver.codes import Code
from mcm.workqueue.backoff import Backoff

_SEVERAL = 3
"""So many machines do not all have something wrong of their own."""
_MOST_CAREFUL_WIDTH = 64
"""Where so many may try at once nothing is held any more; places bound the rest."""
_UNTIMELY = 300.0
"""Seconds after which those behind the first look whether it still tries, if nobody wakes them."""
_UNDECIDED_PAUSE = 5.0
_MOST_SUSPICIONS = 1000
_FORGOTTEN_AFTER = 3600.0


class Sharing(Enum):
    """Whether a code concerns the class, and not the one machine it was answered for."""

    SURE = "sure"
    IF_SEVERAL = "if several"
    """It may: if several machines were answered it and none succeeded in between."""
    NEVER = "never"


_SHARING = {
    Code.RESOURCE_EXHAUSTED: Sharing.SURE,
    Code.UNAUTHENTICATED: Sharing.SURE,
    Code.PERMISSION_DENIED: Sharing.SURE,
    Code.UNIMPLEMENTED: Sharing.SURE,
    Code.INVALID_ARGUMENT: Sharing.IF_SEVERAL,
    Code.OUT_OF_RANGE: Sharing.IF_SEVERAL,
    Code.UNAVAILABLE: Sharing.IF_SEVERAL,
}


def sharing_of(code: Code, pace: Pace) -> Sharing:
    """Judge a failed creation. ``pace`` tells exhausted resources from exhausted calls."""
    if code is Code.RESOURCE_EXHAUSTED and pace is not Pace.EXHAUSTED:
        return Sharing.NEVER
    return _SHARING.get(code, Sharing.NEVER)


class Group(NamedTuple):
    """Machines that a provider treats alike."""

    class_key: str
    zone: str


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """What a machine was answered, and when."""

    code: Code
    text: str
    machine: str
    at: datetime


@final
@dataclass(frozen=True, slots=True)
class Hold:
    """A machine may not try now. ``after``: seconds until it looks again if nobody wakes it;
    ``retry_in``: seconds until the next attempt of any machine, 0 if one is under way."""

    refusal: Refusal
    after: float
    retry_in: float


@final
@dataclass(slots=True)
class _Held:
    circumstances: Hashable
    refusal: Refusal
    retry_at: float
    count: int = 1
    width: int = 1
    """How many may try at once."""
    trying: dict[str, int] = field(default_factory=dict)
    """UIDs of those that do, and the round each began in: a refusal ends a round, and what comes
    of attempts of earlier ones says nothing new."""
    round: int = 0
    waiting: dict[str, str] = field(default_factory=dict)
    """UIDs and keys of all who asked, those that try among them, in order of arrival."""


@final
@dataclass(slots=True)
class _Suspicion:
    code: Code
    circumstances: Hashable
    machines: set[str]


@final
class SharedBackoff:
    """``exhausted``: seconds between two attempts where quota or capacity is used up. ``wake`` is
    called with the key of a machine that should ask now."""

    def __init__(
        self, *, exhausted: float, random: random_module.Random, wake: Callable[[str], None]
    ) -> None:
        self._exhausted = Backoff(exhausted, exhausted)
        self._random = random
        self._wake = wake
        self._held: dict[Group, _Held] = {}
        self._suspicions: dict[Group, _Suspicion] = {}
        self._group_of: dict[str, Group] = {}

    def __len__(self) -> int:
        return len(self._held) + len(self._suspicions) + len(self._group_of)

    def held_back(self) -> Mapping[tuple[str, str, str], int]:
        """Return how many machines wait, by class (its key), zone and name of the code."""
        return {
            (group.class_key, group.zone, held.refusal.code.text): len(held.waiting)
            for group, held in self._held.items()
        }

    def ask(
        self, group: Group, uid: str, key: str, now: float, *, circumstances: Hashable
    ) -> Hold | None:
        """Tell why ``uid`` must wait; None if it may try. Whoever may must say what came of it:
        :meth:`refused`, :meth:`succeeded` or :meth:`undecided`."""
        if self._group_of.get(uid, group) != group:
            self.forget(uid, now)  # its class or zone was changed
        held = self._held.get(group)
        if held is not None and held.circumstances != circumstances:
            self._release(group, held)
            held = None
        if held is None:
            return None
        held.waiting.setdefault(uid, key)
        self._group_of[uid] = group
        if uid in held.trying:
            return None
        if now >= held.retry_at and len(held.trying) < held.width:
            held.trying[uid] = held.round
            return None
        return self._hold(held, uid, now)

    def ask_again(
        self, group: Group, uid: str, key: str, now: float, *, circumstances: Hashable
    ) -> Hold | None:
        """Tell why ``uid``, which was about to try, must wait after all: others may have been
        refused since it asked."""
        held = self._held.get(group)
        if held is None or held.circumstances != circumstances:
            return None  # what it knows may be older
        return self.ask(group, uid, key, now, circumstances=circumstances)

    def refused(
        self,
        group: Group,
        uid: str,
        key: str,
        now: float,
        refusal: Refusal,
        *,
        pace: Pace,
        circumstances: Hashable,
    ) -> Hold | None:
        """Take note of a failure; None if it says nothing about the others."""
        sharing, held = sharing_of(refusal.code, pace), self._held.get(group)
        if held is not None and held.circumstances != circumstances:
            return None  # of before somebody mended it
        if sharing is Sharing.NEVER or (
            sharing is Sharing.IF_SEVERAL
            and not self._seen_by_several(group, uid, refusal.code, held, circumstances)
        ):
            self.undecided(group, uid, now)
            return None
        if held is None:
            self._drop_the_forgotten(now)
            self._suspicions.pop(group, None)
            held = self._held[group] = _Held(circumstances, refusal, now)
            held.retry_at = now + self._delay(pace, 1)
        elif held.trying.pop(uid, None) == held.round:
            known = held.width == 1 and held.refusal.code is refusal.code
            held.count = held.count + 1 if known else 1
            held.width, held.round, held.refusal = 1, held.round + 1, refusal
            held.retry_at = now + self._delay(pace, held.count)
            if sharing is not Sharing.SURE:
                held.waiting.pop(uid, None)  # it may be at fault itself: let another one try
        held.waiting.setdefault(uid, key)
        self._group_of[uid] = group
        if (first := next(iter(held.waiting))) != uid and not held.trying:
            self._wake(held.waiting[first])  # for its time
        return self._hold(held, uid, now)

    def succeeded(self, group: Group, uid: str, now: float) -> None:
        """The provider made what ``uid`` asked for: let more try."""
        self._suspicions.pop(group, None)
        held = self._held.get(group)
        self._group_of.pop(uid, None)
        if held is None:
            return
        held.waiting.pop(uid, None)
        if held.trying.pop(uid, None) != held.round:
            return  # it began before the refusal, so it says nothing about now
        held.width += 1
        held.retry_at = now
        if held.width > _MOST_CAREFUL_WIDTH or not held.waiting:
            self._release(group, held)
        else:
            self._wake_next(held)

    def undecided(self, group: Group, uid: str, now: float) -> None:
        """The attempt of ``uid`` ended without saying anything about the others: was cancelled, or
        failed for a reason of its own. Another one may try."""
        held = self._held.get(group)
        if held is None or uid not in held.trying:
            return
        del held.trying[uid]
        held.retry_at = max(held.retry_at, now + _UNDECIDED_PAUSE)
        key = held.waiting.pop(uid, None)
        self._wake_next(held)
        if key is not None:
            held.waiting[uid] = key  # behind all others

    def not_begun(self, group: Group, uid: str) -> None:
        """``uid`` may try, but has no place at the provider yet: it asks again when it has."""
        if (held := self._held.get(group)) is not None:
            held.trying.pop(uid, None)

    def forget(self, uid: str, now: float) -> None:
        """The machine is gone, or wants no VM any more: the next one takes its turn. One that tries
        right now goes on to do so until it says what came of it."""
        group = self._group_of.pop(uid, None)
        held = self._held.get(group) if group is not None else None
        if held is None:
            return
        was_next = next(iter(held.waiting), "") == uid
        held.waiting.pop(uid, None)
        if was_next and not held.trying:
            self._wake_next(held)
        self._drop_the_forgotten(now)

    def _hold(self, held: _Held, uid: str, now: float) -> Hold:
        left = max(0.0, held.retry_at - now)
        is_next = not held.trying and next(iter(held.waiting)) == uid
        return Hold(held.refusal, left if is_next else left + _UNTIMELY, left)

    def _delay(self, pace: Pace, count: int) -> float:
        backoff = {Pace.EXHAUSTED: self._exhausted, Pace.TRANSIENT: TRANSIENT}.get(pace, LASTING)
        return backoff.delay(count - 1, self._random.random())

    def _seen_by_several(
        self, group: Group, uid: str, code: Code, held: _Held | None, circumstances: Hashable
    ) -> bool:
        if held is not None:
            return held.refusal.code is code
        known = self._suspicions.get(group)
        if known is None or (known.code, known.circumstances) != (code, circumstances):
            if len(self._suspicions) >= _MOST_SUSPICIONS:
                del self._suspicions[next(iter(self._suspicions))]
            known = self._suspicions[group] = _Suspicion(code, circumstances, set())
        known.machines.add(uid)
        return len(known.machines) >= _SEVERAL

    def _wake_next(self, held: _Held) -> None:
        """Wake as many as may try, and at least one: for its time."""
        free = max(1, held.width - len(held.trying))
        behind = (key for uid, key in held.waiting.items() if uid not in held.trying)
        for _, key in zip(range(free), behind, strict=False):
            self._wake(key)

    def _release(self, group: Group, held: _Held) -> None:
        del self._held[group]
        for uid, key in held.waiting.items():
            self._group_of.pop(uid, None)
            self._wake(key)

    def _drop_the_forgotten(self, now: float) -> None:
        """Forget refusals that nobody waits for any more."""
        for group, held in tuple(self._held.items()):
            idle = not held.waiting and not held.trying
            if idle and now > held.retry_at + _FORGOTTEN_AFTER:
                del self._held[group]
