"""When a request may start: a cap on requests in flight, and an optional rate.

The server's own fairness (429, Retry-After) is the main brake; the rate is a seat belt against a
loop of our own making, and off by default.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

from mcm.clock import Clock
from mcm.workqueue.token_bucket import TokenBucket


@final
class Throttle:
    """Holds a request back until it may start. First come, first served."""

    def __init__(self, *, clock: Clock, max_in_flight: int, qps: float = 0, burst: int = 0) -> None:
        self._clock = clock
        self._slots = asyncio.Semaphore(max_in_flight) if max_in_flight else None
        self._bucket = TokenBucket(rate=qps, burst=max(1, burst)) if qps > 0 else None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a token and a slot; the slot is held while the context is open."""
        await self._token()
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield

    async def _token(self) -> None:
        if self._bucket is None:
            return
        delay = self._bucket.reserve(self._clock.monotonic())
        if not delay:
            return
        try:
            await self._clock.sleep(delay)
        except BaseException:  # cancelled: the next in line must not pay for us
            self._bucket.give_back()
            raise
