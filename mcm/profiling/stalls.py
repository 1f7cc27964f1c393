"""Notices when the event loop stands still, measures for how long, and names in what.

The loop notes that it turns, ten times a second; each time it is late is measured. A thread looks
whether it did: while it does not, the thread takes down what the loop is in. Where nothing of
Python could run meanwhile, as in the garbage collector, it sees what the loop is in after that.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, final

from prometheus_client import CollectorRegistry, Histogram

from mcm.clock import Clock
from mcm.metrics import once_per_registry
from mcm.profiling.profile import Measure, Profile
from mcm.profiling.stacks import Stack, stack_of_thread
from mcm.rate_limited_log import RateLimitedLog

logger = logging.getLogger(__name__)

TOLD_FROM: Final = 0.2
"""Seconds of standing still from which on it is told in the log."""

_BEAT: Final = 0.1
_LOOKED_EVERY: Final = 0.05
_LOOKED_CLOSELY: Final = 0.005
_RECORDED_FROM: Final = 0.01
_MOST_STACKS: Final = 1000
_CALLS_SHOWN: Final = 5
_MEASURES: Final = (Measure("contentions", "count"), Measure("delay", "nanoseconds"))
_OF_NO_INTEREST: Final = ("asyncio.", "uvloop.", "threading.", "mcm.profiling.")


@final
class LoopMetrics:
    """How late the loop comes round, each time it was due."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.lag = Histogram(
            "mcm_event_loop_lag_seconds",
            "How late the event loop was to call back, looked at ten times a second.",
            buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
            registry=registry,
        )


@final
class Stalls:
    """Watches the loop that :meth:`watched` is entered in. With ``closely`` it looks often enough
    to record what stands still for a hundredth of a second, for :meth:`profile`."""

    def __init__(self, *, clock: Clock, registry: CollectorRegistry, closely: bool = False) -> None:
        self._clock = clock
        self._metrics = once_per_registry(registry, LoopMetrics)
        self._closely = closely
        self._log = RateLimitedLog(logger, clock)
        self._ended = threading.Event()
        self._ident = 0
        self._due = 0.0
        self._cpu_at_beat = 0.0
        self._sighted: Counter[Stack] = Counter()
        self._collected = 0.0
        self._collecting_since = 0.0
        self._recorded: dict[Stack, tuple[int, int]] = {}
        self._since = clock.now().timestamp()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the running loop while the context lasts."""
        self._ident = threading.get_ident()
        thread = threading.Thread(target=self._look, name="event loop watch", daemon=True)
        loop = asyncio.get_running_loop()
        self._expect(loop)
        gc.callbacks.append(self._on_collection)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            gc.callbacks.remove(self._on_collection)
            self._timer.cancel()

    def profile(self) -> Profile:
        """Return in what the loop stood still, how often, and for how long in all."""
        now = self._clock.now().timestamp()
        recorded: Mapping[Stack, tuple[int, ...]] = dict(self._recorded)
        return Profile(
            measures=_MEASURES,
            samples=recorded,
            seconds=now - self._since,
            started_at=self._since,
        )

    # ---- on the loop ----------------------------------------------------------------------------

    def _expect(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = self._clock.monotonic() + _BEAT
        self._cpu_at_beat = time.thread_time()
        self._timer = loop.call_later(_BEAT, self._beat, loop)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        late = max(0.0, self._clock.monotonic() - self._due)
        self._metrics.lag.observe(late)
        if late >= (_RECORDED_FROM if self._closely else TOLD_FROM):
            self._stood_still(late)
        self._sighted, self._collected = Counter(), 0.0
        self._expect(loop)

    def _stood_still(self, late: float) -> None:
        stack = max(self._sighted, key=self._sighted.__getitem__, default=())
        if stack in self._recorded or len(self._recorded) < _MOST_STACKS:
            count, total = self._recorded.get(stack, (0, 0))
            self._recorded[stack] = count + 1, total + int(late * 1e9)
        if late >= TOLD_FROM:
            busy = time.thread_time() - self._cpu_at_beat
            told = f"the event loop stood still for {late:.2f} s, {busy:.2f} s of it on the CPU"
            if self._collected >= late / 2:
                told += f", {self._collected:.2f} s in the garbage collector"
            self._log.tell("stalls", f"{told}: {in_words(stack)}")

    def _on_collection(self, phase: str, _: Mapping[str, int]) -> None:
        if threading.get_ident() != self._ident:
            return
        now = self._clock.monotonic()
        if phase == "start":
            self._collecting_since = now
        else:
            self._collected += now - self._collecting_since

    # ---- in the thread --------------------------------------------------------------------------

    def _look(self) -> None:
        period = _LOOKED_CLOSELY if self._closely else _LOOKED_EVERY
        while not self._ended.wait(period):
            if self._clock.monotonic() - self._due >= period:
                self._sighted[stack_of_thread(self._ident)] += 1


def in_words(stack: Stack) -> str:
    """Name the innermost calls of our own, and whose they are."""
    calls = [str(call) for call in stack if not call.function.startswith(_OF_NO_INTEREST)]
    return ", called by ".join(calls[:_CALLS_SHOWN]) or "in what was not seen"
