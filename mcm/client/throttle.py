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


@final
class TokenBucket:
    """Pure: ``qps`` tokens a second, at most ``burst`` saved up. Debts are served in order."""

    def __init__(self, *, qps: float, burst: int, now: float) -> None:
        if qps <= 0:
            raise ValueError("qps must be positive")
        self._qps = qps
        self._burst = max(1, burst)
        self._tokens = float(self._burst)
        self._at = now

    def take(self, now: float) -> float:
        """Take one token and return the seconds to wait until it is there (0: at once)."""
        elapsed = max(0.0, now - self._at)
        self._at = max(self._at, now)
        self._tokens = min(float(self._burst), self._tokens + elapsed * self._qps) - 1.0
        return max(0.0, -self._tokens / self._qps)

    def give_back(self) -> None:
        """Return a token whose request was never made (its caller was cancelled)."""
        self._tokens = min(float(self._burst), self._tokens + 1.0)


@final
class Throttle:
    """Holds a request back until it may start. First come, first served."""

    def __init__(self, *, clock: Clock, max_in_flight: int, qps: float = 0, burst: int = 0) -> None:
        self._clock = clock
        self._slots = asyncio.Semaphore(max_in_flight) if max_in_flight else None
        self._qps = qps
        self._burst = burst
        self._bucket: TokenBucket | None = None

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
        if self._qps <= 0:
            return
        if self._bucket is None:
            self._bucket = TokenBucket(
                qps=self._qps, burst=self._burst, now=self._clock.monotonic()
            )
        delay = self._bucket.take(self._clock.monotonic())
        if not delay:
            return
        try:
            await self._clock.sleep(delay)
        except BaseException:  # cancelled: the next in line must not pay for us
            self._bucket.give_back()
            raise
