"""Time as an argument: the only module that may ask the machine what time it is.

Everything that waits, times out or stamps takes a :class:`Clock`. Under the simulation's virtual
loop the same code lives through hours in milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol, final


class Clock(Protocol):
    """Wall time for stamps that people and other programs read, monotonic time for durations."""

    def now(self) -> datetime:
        """Return the wall time, timezone-aware, in UTC. It may jump; never subtract two of them
        to decide how long something of our own took."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that only moves forward; comparable with ``loop.time()``."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait ``seconds``; zero or less yields once to the loop."""
        ...


@final
class SystemClock:
    """The machine's wall clock; the running loop's time as the monotonic one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


@final
class LoopClock:
    """A clock that follows its event loop: wall time is ``epoch`` plus the loop's time.

    With a loop whose time is virtual, every timer, timeout and stamp of the program moves together.
    """

    def __init__(self, epoch: datetime, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._epoch = epoch
        self._loop = loop

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return (self._loop or asyncio.get_running_loop()).time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
