"""Whose request is next: so many at a time in all, so many of one drain, and drains in turn."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

AT_ONCE: Final = 32
"""Requests of all drains together: half of what a client has under way, so that drains never keep
others from being served."""
AT_ONCE_OF_ONE: Final = 16


@final
class Turns:
    """Lets requests begin. A drain with hundreds of pods holds up no drain with one."""

    def __init__(self, *, total: int = AT_ONCE, each: int = AT_ONCE_OF_ONE) -> None:
        self._free = total
        self._each = each
        self._under_way: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By drain; the first key is next."""

    @asynccontextmanager
    async def turn(self, drain: str) -> AsyncIterator[None]:
        """Wait for the drain's turn, and hold it while the context is open."""
        await self._begin(drain)
        try:
            yield
        finally:
            self._end(drain)

    async def _begin(self, drain: str) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(drain, deque()).append(mine)
        self._let_begin()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._end(drain)  # it was given the turn in the moment in which it gave up
            else:
                self._leave(drain, mine)
            raise

    def _end(self, drain: str) -> None:
        self._free += 1
        self._under_way[drain] -= 1
        if not self._under_way[drain]:
            del self._under_way[drain]
        self._let_begin()

    def _let_begin(self) -> None:
        while self._free > 0 and (drain := self._next()) is not None:
            waiting = self._waiting.pop(drain)
            mine = waiting.popleft()
            if waiting:
                self._waiting[drain] = waiting  # behind all others
            if mine.cancelled():
                continue  # who gave up may not know yet
            mine.set_result(None)
            self._free -= 1
            self._under_way[drain] += 1

    def _next(self) -> str | None:
        for drain in self._waiting:
            if self._under_way[drain] < self._each:
                return drain
        return None

    def _leave(self, drain: str, mine: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(drain)
        if waiting is None or mine not in waiting:
            return  # it was passed over
        waiting.remove(mine)
        if not waiting:
            del self._waiting[drain]
