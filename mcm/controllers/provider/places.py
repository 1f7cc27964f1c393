"""Room for slow provider calls: a full house holds up its own kind of work and no other.

Creations and deletions wait for a cloud, health waits for nobody. For each of the former there are
so many places; a machine that finds none does not hold a worker but is woken when one is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import final


class Purpose(Enum):
    """What a place is for; each has places of its own."""

    CREATION = "creation"
    DELETION = "deletion"


@final
class Places:
    """``width`` places for each purpose. ``wake`` is called with the key whose turn it is.

    Invariant: while a place is free and keys wait, the first of them has been woken.
    """

    def __init__(self, *, width: int, wake: Callable[[str], None]) -> None:
        self._width = width
        self._wake = wake
        self._taken = dict.fromkeys(Purpose, 0)
        # In order of arrival.
        self._waiting: dict[Purpose, dict[str, None]] = {purpose: {} for purpose in Purpose}

    @contextmanager
    def attending(self, key: str) -> Iterator[None]:
        """Surround a pass over ``key``: it will ask again if it still needs a place."""
        for purpose, waiting in self._waiting.items():
            if key in waiting:
                del waiting[key]
                if self._taken[purpose] < self._width:
                    self._call_next(waiting)  # it may not want the place it was woken for
        yield

    @contextmanager
    def place(self, purpose: Purpose, key: str, *, class_key: str) -> Iterator[bool]:
        """Yield whether ``key`` has a place while the block runs; if not, it is woken later.

        ``class_key`` is the machine class on whose account the place is taken.
        """
        waiting = self._waiting[purpose]
        if self._taken[purpose] >= self._width:
            waiting.setdefault(key)
            yield False
            return
        self._taken[purpose] += 1
        try:
            yield True
        finally:
            self._taken[purpose] -= 1
            self._call_next(waiting)

    def _call_next(self, waiting: dict[str, None]) -> None:
        if waiting:
            self._wake(next(iter(waiting)))
