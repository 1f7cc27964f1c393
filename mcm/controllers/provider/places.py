"""Who may call the provider next: places for slow calls, shared fairly by the machine classes.

Creations, deletions and updates wait for a cloud, health waits for nobody. For each of the former
there are so many places; a machine that finds none holds no worker but is woken when it has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import final

_RESERVED = 5
"""One place in reserve for so many others."""

_CREATIONS_PER_UPDATE = 5


class Purpose(Enum):
    """What a place is for; each has places of its own."""

    CREATION = "creation"
    DELETION = "deletion"
    UPDATE = "update"
    """Of VMs that run: it can wait, so there are a fifth as many places."""


@final
class Places:
    """``width`` places for each purpose, and a fifth of that (at least one) in reserve.

    ``updating`` tells how many places a class may have for updates now, however many are free. Once
    that has risen, :meth:`reconsider` must be called.

    ``wake`` is called once with a key that waited, when it has a place: the place is kept for it
    until its next pass, so that nobody overtakes it. What holds at any moment:

    * Within a class, places are given in the order in which keys first asked.
    * A place is given to the waiting class that has the fewest, and of several to the one that got
      its last one (or came) the longest ago. So before a class that waits with no place gets its
      first one, every other class gets at most one.
    * No key waits while fewer than ``width`` places are taken: a class that is alone may have them
      all. Beyond, a class may have a place from the reserve while it has fewer than are left there.
      So behind a class that fills all places with calls of minutes another one gets half of the
      reserve at once, the next one half of the rest, and so on: with ``width`` 50, four classes get
      a place at once. Whoever comes then has to wait for one call to end.
    """

    def __init__(
        self,
        *,
        width: int,
        wake: Callable[[str], None],
        updating: Callable[[str], float] = lambda _: math.inf,
    ) -> None:
        if width < 1:
            raise ValueError(f"no call could be made with {width} places")
        self._kinds = {
            Purpose.CREATION: _Kind(width, wake),
            Purpose.DELETION: _Kind(width, wake),
            Purpose.UPDATE: _Kind(max(1, width // _CREATIONS_PER_UPDATE), wake, updating),
        }
        # Of each key whose pass is under way: for what it has asked so far.
        self._asked: dict[str, set[Purpose]] = {}

    @property
    def most(self) -> int:
        """How many calls can be under way at most, those of all purposes together."""
        return sum(kind.total for kind in self._kinds.values())

    def reconsider(self, purpose: Purpose) -> None:
        """Wake whoever may have a place now: a class may have got a higher ceiling."""
        self._kinds[purpose].hand_out()

    @contextmanager
    def attending(self, key: str) -> Iterator[None]:
        """Surround each pass over ``key``: what it does not ask for again, it no longer wants.

        A pass that fails before it asks gives up the place kept for it, and asks anew later.
        """
        asked = self._asked[key] = set()
        try:
            yield
        finally:
            del self._asked[key]
            for purpose, kind in self._kinds.items():
                if purpose not in asked:
                    kind.withdraw(key)

    @contextmanager
    def place(self, purpose: Purpose, key: str, *, class_key: str) -> Iterator[bool]:
        """Yield whether ``key`` has a place while the block runs; if not, it is woken later.

        ``class_key`` is the machine class on whose account the place is taken.
        """
        self._asked.get(key, set()).add(purpose)
        kind = self._kinds[purpose]
        if not kind.take(key, class_key):
            yield False
            return
        try:
            yield True
        finally:
            kind.give_back(class_key)


@final
@dataclass(slots=True)
class _Share:
    """One class: how many places it has, those kept for its keys among them, and who waits."""

    turn: int
    """When it got its last place, or came."""
    has: int = 0
    waiting: dict[str, None] = field(default_factory=dict)
    """In order of arrival."""


@final
class _Kind:
    """The places for one purpose; ``ceiling`` tells how many of them a class may have."""

    def __init__(
        self,
        width: int,
        wake: Callable[[str], None],
        ceiling: Callable[[str], float] = lambda _: math.inf,
    ) -> None:
        self._width = width
        self._ceiling = ceiling
        self.total = width + max(1, width // _RESERVED)
        self._wake = wake
        self._taken = 0
        self._shares: dict[str, _Share] = {}
        self._kept: dict[str, str] = {}
        """Whose turn it is, until it comes: key and class."""
        self._waits_in: dict[str, str] = {}
        self._moment = 0  # a clock for the order of things only

    def take(self, key: str, class_key: str) -> bool:
        """Take a place for ``key`` if it is its turn; else let it wait where it stands."""
        known = self._kept.get(key, self._waits_in.get(key))
        if known not in (None, class_key):
            self.withdraw(key)  # its class was changed: it stands in another line now
        if key not in self._kept and key not in self._waits_in:
            self._moment += 1
            self._shares.setdefault(class_key, _Share(turn=self._moment)).waiting[key] = None
            self._waits_in[key] = class_key
            self.hand_out(asking=key)
        return self._kept.pop(key, None) is not None

    def give_back(self, class_key: str) -> None:
        share = self._shares[class_key]
        share.has -= 1
        self._taken -= 1
        self._drop_if_empty(class_key, share)
        self.hand_out()

    def withdraw(self, key: str) -> None:
        """Let ``key`` wait no more, and give back what was kept for it."""
        if (class_key := self._kept.pop(key, None)) is not None:
            self.give_back(class_key)
        elif (class_key := self._waits_in.pop(key, None)) is not None:
            share = self._shares[class_key]
            del share.waiting[key]
            self._drop_if_empty(class_key, share)

    def hand_out(self, *, asking: str = "") -> None:
        """Keep places for those whose turn it is, and wake all of them but the one that asks."""
        while (class_key := self._next()) is not None:
            share = self._shares[class_key]
            key = next(iter(share.waiting))
            del share.waiting[key], self._waits_in[key]
            self._moment += 1
            self._taken += 1
            share.turn, share.has = self._moment, share.has + 1
            self._kept[key] = class_key
            if key != asking:
                self._wake(key)

    def _next(self) -> str | None:
        """Return the class whose turn it is; None if nobody may have a place now."""
        left = self.total - self._taken
        if left <= 0 or not self._waits_in:
            return None
        waiting = (
            (share.has, share.turn, name)
            for name, share in self._shares.items()
            if share.waiting and share.has < self._ceiling(name)
        )
        fewest, _, class_key = min(waiting, default=(left, 0, None))
        return class_key if self._taken < self._width or fewest < left else None

    def _drop_if_empty(self, class_key: str, share: _Share) -> None:
        if not share.has and not share.waiting:
            del self._shares[class_key]
