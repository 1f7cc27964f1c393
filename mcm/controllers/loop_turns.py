"""How long reconciles may go on before the event loop turns.

A reconcile that has nothing to write waits for nothing, nor does its worker for the next key: after
a start, when all keys of a large fleet are ready at once, one worker would go through them in one
go. Meanwhile no lease is renewed, no watch is read and no probe answered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, final

from mcm.clock import Clock

LONGEST: Final = 0.01
"""Seconds of reconciles between two turns of the loop, and the rest of the one that began last."""


@final
class LoopTurns:
    """For all workers of one loop together: each asks before it begins a reconcile.

    Whoever has to wait begins before whoever comes later, or comes again.
    """

    def __init__(self, clock: Clock, *, longest: float = LONGEST) -> None:
        self._clock = clock
        self._longest = longest
        self._begun_at: float | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._passed_over: deque[asyncio.Future[None]] = deque()

    async def begin(self) -> None:
        """Return at once while there is time left before the loop turns, else after that."""
        line = self._waiting
        while not self._may_begin():
            waiter = asyncio.get_running_loop().create_future()
            line.append(waiter)
            await waiter
            line = self._passed_over

    def _may_begin(self) -> bool:
        now = self._clock.monotonic()
        if self._begun_at is None:
            self._begun_at = now
            asyncio.get_running_loop().call_soon(self._turned)
        return now - self._begun_at < self._longest

    def _turned(self) -> None:
        if not self._waiting and not self._passed_over:
            self._anew()
            return
        # Before those that it wakes: in this turn nobody else may come first.
        asyncio.get_running_loop().call_soon(self._anew)
        waiters = (*self._passed_over, *self._waiting)
        self._passed_over.clear()
        self._waiting.clear()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _anew(self) -> None:
        self._begun_at = None
