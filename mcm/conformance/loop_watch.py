"""Tells a blocked event loop from a busy machine: a thread ticks beside the loop."""

from __future__ import annotations

import asyncio
import threading
from typing import final

from mcm.clock import Clock, SystemClock

_TICK = 0.02
LONGEST = 0.5
"""Seconds for which a loop may stand still: health checks and leases wait on the same one."""


@final
class LoopWatch:
    """Measures, while it is entered, how long the loop stood still although the process ran.

    Seconds in which the thread did not run either are not counted: then the machine was busy.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._beats = 0
        self._longest = 0
        self._since = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="loop-watch", daemon=True)

    @property
    def longest(self) -> float:
        """The longest standstill so far, in seconds."""
        return max(self._longest, self._beats - self._since) * _TICK

    def _beat(self) -> None:
        while not self._over.wait(_TICK):
            self._beats += 1

    async def _tick(self) -> None:
        while True:
            self._longest = max(self._longest, self._beats - self._since)
            self._since = self._beats
            await self._clock.sleep(_TICK)

    async def __aenter__(self) -> LoopWatch:
        self._thread.start()
        self._task = asyncio.create_task(self._tick())
        await self._clock.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._longest = max(self._longest, self._beats - self._since)
        self._since = self._beats
        self._over.set()
        self._task.cancel()
        await asyncio.wait({self._task})
        self._thread.join()
