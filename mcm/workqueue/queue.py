"""Hands ready keys to those who wait: the asyncio driver of :class:`.state.QueueState`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar, final

from mcm.clock import Clock
from mcm.workqueue.limiters import RateLimiter, default_limiter
from mcm.workqueue.metrics import OneQueueMetrics, QueueMetrics
from mcm.workqueue.state import AGEING, QueueState

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

_EXACT = 1e-6  # seconds: less than this before a deadline is rounding, not earliness
_MOST_NOTES = 8
_TICK = 0.001  # seconds: the resolution of the coarsest loop, uvloop


class QueueShutDown(Exception):
    """The queue is shut down and nothing is ready: a worker's sign to end."""


@final
class WorkQueue(Generic[K]):
    """A queue of keys; its promises are in the package's docstring.

    All methods but :meth:`get` and the waits are synchronous and may be called from callbacks of
    the loop. ``name`` labels its metrics. ``ageing`` is priority per second of waiting.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        limiter: RateLimiter[K] | None = None,
        metrics: QueueMetrics | None = None,
        ageing: float = AGEING,
    ) -> None:
        self.name = name
        self._clock = clock
        self._limiter: RateLimiter[K] = limiter if limiter is not None else default_limiter()
        self._state: QueueState[K] = QueueState(ageing=ageing)
        self._adds_reported = 0
        self._notes: dict[K, list[object]] = {}
        self._notes_taken: dict[K, tuple[object, ...]] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._closed = asyncio.Event()
        self._series: OneQueueMetrics | None = None
        if metrics is not None:
            self._series = metrics.of_queue(name, self._ages)

    def __len__(self) -> int:
        """Return the number of ready keys."""
        return self._state.ready

    def __repr__(self) -> str:
        state = self._state
        return (
            f"<WorkQueue {self.name}: {state.ready} ready, {len(state.processing)} processing, "
            f"{state.delayed} delayed{', shut down' if state.is_shut_down else ''}>"
        )

    @property
    def is_shut_down(self) -> bool:
        return self._state.is_shut_down

    @property
    def delayed(self) -> int:
        """The number of keys that wait for their deadline."""
        return self._state.delayed

    @property
    def processing(self) -> tuple[K, ...]:
        """The keys that are handed out, oldest first."""
        return tuple(self._state.processing)

    # Adding

    def add(self, key: K, *, priority: int = 0) -> None:
        """Say that ``key`` needs work. Ignored after :meth:`shut_down`."""
        ready = self._state.add(key, priority=priority, now=self._clock.monotonic())
        if ready:
            self._wake(ready)

    def add_after(self, key: K, delay: float, *, priority: int = 0) -> None:
        """Add ``key`` in ``delay`` seconds; of several such calls the earliest deadline counts.

        An :meth:`add` in between does not cancel it. Raises ValueError if ``delay`` is no number
        or infinite.
        """
        if not math.isfinite(delay):
            raise ValueError(f"key {key!r} cannot be added after {delay} seconds")
        if delay <= 0:
            self.add(key, priority=priority)
            return
        now = self._clock.monotonic()
        self._wake(self._state.add_at(key, now + delay, priority=priority, now=now))
        self._arm_timer()

    def add_rate_limited(self, key: K, *, priority: int = 0, at_least: float = 0.0) -> float:
        """Count a failure of ``key``, add it when the limiter allows; return the delay in seconds.

        ``at_least`` is a floor, as a server's ``Retry-After`` sets it.
        """
        if self._state.is_shut_down:
            return 0.0
        delay = max(at_least, self._limiter.delay(key, self._clock.monotonic()))
        if self._series is not None:
            self._series.retries.inc()
        self.add_after(key, delay, priority=priority)
        return delay

    def forget(self, key: K) -> None:
        """Clear the failures of ``key``; a delayed add stays."""
        self._limiter.forget(key)

    def failures(self, key: K) -> int:
        """Return the number of rate-limited adds since ``key`` was last forgotten."""
        return self._limiter.failures(key)

    def priority(self, key: K) -> int:
        """Return the priority that ``key``, now in processing, was handed out with (else 0)."""
        flight = self._state.processing.get(key)
        return flight.priority if flight is not None else 0

    def note(self, key: K, note: object) -> None:
        """Keep ``note`` for whoever takes ``key`` next; of many only the first few. It changes
        nothing else: say it beside the call that adds the key."""
        if self._state.is_shut_down:
            return
        noted = self._notes.setdefault(key, [])
        if len(noted) < _MOST_NOTES:
            noted.append(note)

    def notes(self, key: K) -> tuple[object, ...]:
        """Return what was noted for ``key``, now in processing, until it was handed out."""
        return self._notes_taken.get(key, ())

    def waited(self, key: K) -> float:
        """Return the seconds that ``key``, now in processing, waited to be taken (else 0)."""
        flight = self._state.processing.get(key)
        return flight.waited if flight is not None else 0.0

    # Taking

    def get_nowait(self) -> K | None:
        """Return the next key, or None if none is ready."""
        taken = self._state.take(self._clock.monotonic())
        if taken is None:
            return None
        if self._series is not None:
            self._series.waited.observe(taken.waited)
        if self._notes:
            self._notes_taken[taken.key] = tuple(self._notes.pop(taken.key, ()))
        self._report()
        return taken.key

    async def get(self) -> K:
        """Return the next key, waiting for one; the caller must call :meth:`done` with it.

        Raises QueueShutDown once the queue is shut down and nothing is ready. A cancelled call took
        no key.
        """
        self._arm_timer()
        while (key := self.get_nowait()) is None:
            if self._state.is_shut_down:
                raise QueueShutDown(self.name)
            await self._wait_for_key()
        return key

    def done(self, key: K) -> None:
        """End the work on ``key``. A key that was not handed out is ignored."""
        now = self._clock.monotonic()
        ended = self._state.done(key, now)
        if ended is None:
            return
        flight, became_ready = ended
        if self._notes_taken:
            self._notes_taken.pop(key, None)
        if self._series is not None:
            self._series.worked.observe(max(0.0, now - flight.since))
        self._wake(became_ready)
        self._notice_end()

    # Ending

    def shut_down(self) -> None:
        """Refuse adds, drop delayed keys; ready keys are still handed out. Idempotent."""
        if self._state.is_shut_down:
            return
        dropped = self._state.shut_down()
        self._notes.clear()
        if self._series is not None:
            self._series.dropped.inc(dropped)
        log.debug("queue %s shuts down, %d delayed keys dropped", self.name, dropped)
        self._arm_timer()
        self._closed.set()
        self._wake_all_getters()
        self._notice_end()

    async def wait_shut_down(self) -> None:
        """Wait until :meth:`shut_down` was called."""
        await self._closed.wait()

    async def drain(self) -> None:
        """Wait until nothing is ready, in processing, or dirty; delayed keys do not count.

        Adds are still accepted: call :meth:`shut_down` first to end the queue.
        """
        while not self._state.idle:
            waiter = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._idle_waiters:
                    self._idle_waiters.remove(waiter)

    # Waking

    async def _wait_for_key(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._getters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake(1)  # we were woken for a key: it is another getter's now
            else:
                with contextlib.suppress(ValueError):
                    self._getters.remove(waiter)
            raise

    def _wake(self, count: int) -> None:
        """Wake one waiting getter for each of ``count`` keys that became ready."""
        self._report()
        while count > 0 and self._getters:
            waiter = self._getters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1

    def _wake_all_getters(self) -> None:
        self._wake(len(self._getters))

    def _notice_end(self) -> None:
        if self._state.is_shut_down:
            self._wake_all_getters()
        if self._state.idle:
            waiters, self._idle_waiters = self._idle_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    # The timer

    def _arm_timer(self, *, at_least: float = 0.0) -> None:
        """Keep exactly one timer, for the earliest deadline."""
        deadline = self._state.next_deadline
        if self._timer is not None:
            if deadline == self._timer_at:
                return
            self._timer.cancel()
            self._timer = None
        if deadline is None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # filled before the loop runs: the first get() arms it
        wait = max(at_least, deadline - self._clock.monotonic())
        self._timer_at = deadline
        self._timer = loop.call_later(wait, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        if self._timer_at - now > _EXACT:
            self._arm_timer(at_least=_TICK)
            return
        self._wake(self._state.release_due(max(now, self._timer_at)))
        self._arm_timer()

    # Metrics

    def _ages(self) -> list[float]:
        now = self._clock.monotonic()
        return [max(0.0, now - flight.since) for flight in self._state.processing.values()]

    def _report(self) -> None:
        if self._series is None:
            return
        self._series.depth.set(self._state.ready)
        self._series.adds.inc(self._state.adds - self._adds_reported)
        self._adds_reported = self._state.adds
