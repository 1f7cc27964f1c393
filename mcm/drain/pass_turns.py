"""Whose pass may send requests now: so many drains of one cluster at a time, the others wait.

A hundred drains that begin at once send thousands of requests. Who finds no turn holds no worker
and no place in the client's line, so that whatever else is to be done is not held up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

AT_ONCE: Final = 8
LOOK_AGAIN: Final = 1.0
"""Seconds after which one looks whether there is a turn, though nobody called."""


@final
class PassTurns:
    """``wake`` is called with the name of one that found no turn, once there may be one."""

    def __init__(self, width: int = AT_ONCE, *, wake: Callable[[str], None]) -> None:
        self._free = width
        self._wake = wake
        self._waiting: dict[str, None] = {}

    @contextmanager
    def turn(self, name: str) -> Iterator[bool]:
        """Yield whether ``name`` has a turn while the block runs."""
        self._waiting.pop(name, None)
        if self._free <= 0:
            self._waiting[name] = None
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1
            self._call_next()

    def _call_next(self) -> None:
        for name in tuple(self._waiting)[: self._free]:
            del self._waiting[name]
            self._wake(name)
