"""Room for slow provider calls: a full lane holds up its own kind of work and no other.

Creations and deletions wait for a cloud, health waits for nobody. Each of the former has a lane
with so many places; a machine that finds none does not hold a worker but is woken when one is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import final


class Lane(Enum):
    CREATION = "creation"
    DELETION = "deletion"


@final
class DriverLanes:
    """``width`` places in each lane. ``wake`` is called with the key whose turn it is.

    Invariant: while a place is free and keys wait, the first of them has been woken.
    """

    def __init__(self, *, width: int, wake: Callable[[str], None]) -> None:
        self._width = width
        self._wake = wake
        self._taken = dict.fromkeys(Lane, 0)
        # In order of arrival.
        self._waiting: dict[Lane, dict[str, None]] = {lane: {} for lane in Lane}

    @contextmanager
    def place(self, lane: Lane, key: str) -> Iterator[bool]:
        """Yield whether ``key`` has a place while the block runs; if not, it is woken later."""
        waiting = self._waiting[lane]
        if self._taken[lane] >= self._width:
            waiting.setdefault(key)
            yield False
            return
        self._taken[lane] += 1
        try:
            yield True
        finally:
            self._taken[lane] -= 1
            self._call_next(waiting)

    def forget(self, key: str) -> None:
        """``key`` is up: it will ask again if it still needs a place. To be called at each pass."""
        for lane, waiting in self._waiting.items():
            if key in waiting:
                del waiting[key]
                if self._taken[lane] < self._width:
                    self._call_next(waiting)  # it may not want the place it was woken for

    def _call_next(self, waiting: dict[str, None]) -> None:
        if waiting:
            self._wake(next(iter(waiting)))
