"""When a request may start: a cap on requests in flight, and an optional rate.

The server's own fairness (429, Retry-After) is the main brake, and the cap gives way to it
(:mod:`.in_flight`); the rate is a seat belt against a loop of our own making, and off by default.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import final

from mcm.client.in_flight import InFlightLimit
from mcm.clock import Clock
from mcm.workqueue.token_bucket import TokenBucket


@final
class Throttle:
    """Holds a request back until it may start. First come, first served.

    Who entered leaves, whatever happened: by :meth:`leave`, before which it may say what became of
    its request.
    """

    def __init__(self, *, clock: Clock, max_in_flight: int, qps: float = 0, burst: int = 0) -> None:
        self._clock = clock
        self._limit = InFlightLimit(max_in_flight) if max_in_flight else None
        self._bucket = TokenBucket(rate=qps, burst=max(1, burst)) if qps > 0 else None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0

    @property
    def allowed(self) -> int:
        """How many may be in flight at the moment; 0: any number."""
        return self._limit.now_allowed if self._limit is not None else 0

    async def enter(self) -> None:
        """Wait for a token and a turn."""
        if self._bucket is not None:
            await self._token(self._bucket)
        if not self._waiters and not self._full():
            self.in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # it was given to us in the same moment
            else:
                with contextlib.suppress(ValueError):
                    self._waiters.remove(turn)
            raise

    def leave(self) -> None:
        """Give the turn to those who wait."""
        self.in_flight -= 1
        while self._waiters and not self._full():
            turn = self._waiters.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def served(self) -> None:
        """A request in flight was answered."""
        if self._limit is not None:
            self._limit.served(in_flight=self.in_flight, now=self._clock.monotonic())

    def refused(self, *, begun: float, wait: float) -> None:
        """A request in flight since ``begun`` was one too many for the server, which wants to be
        spared for ``wait`` seconds."""
        if self._limit is not None:
            now = self._clock.monotonic()
            self._limit.refused(in_flight=self.in_flight, begun=begun, now=now, wait=wait)

    def _full(self) -> bool:
        return self._limit is not None and self.in_flight >= self._limit.now_allowed

    async def _token(self, bucket: TokenBucket) -> None:
        delay = bucket.reserve(self._clock.monotonic())
        if not delay:
            return
        try:
            await self._clock.sleep(delay)
        except BaseException:  # cancelled: the next in line must not pay for us
            bucket.give_back()
            raise
