"""Workers that take keys from a queue and reconcile them.

``Controller.run()`` keeps N workers. What a reconcile returns or raises decides about the key:

===========================  =====================================================================
outcome                      what happens to the key
===========================  =====================================================================
``DONE``                     forgotten; only an add brings it back
``Outcome(after=s)``         forgotten, added again in ``s`` seconds
Conflict, AlreadyExists      rate-limited retry, logged at debug level: the stores will catch up
LeadershipLost               the same: the process is about to end, and says so itself
an expected error            rate-limited retry (not before the server's ``Retry-After``), one
                             warning line
TerminalError                forgotten, counted, one warning line
a patch was held back        again when it may be made (see :mod:`.write_guard`)
any other exception          rate-limited retry; a traceback the first time
no ``Outcome``               the same, as a TypeError that says what came instead
a cancellation not ours      the same, as a StrayCancellation
===========================  =====================================================================

No key is ever given up after so-and-so many retries: the back-off grows to 1000 s and stays there.
Nothing ends a worker silently: what no retry can mend ends the controller.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import final

from mcm import correlation
from mcm.client.errors import AlreadyExists, ApiError, Conflict, KubeError
from mcm.clock import Clock
from mcm.controllers import causes
from mcm.controllers.loop_turns import LoopTurns
from mcm.controllers.runtime_metrics import ControllerMetrics, Result
from mcm.controllers.write_guard import NotConverging, Reconcile, author_of, reconciling
from mcm.driver.errors import DriverError
from mcm.leaderelection import LeadershipLost
from mcm.tracing import NO_TRACES, Span, Tracer, Value
from mcm.workqueue import QueueShutDown, WorkQueue

log = logging.getLogger(__name__)

SLOW_RECONCILE = 30.0
"""Seconds after which a reconcile that still runs is reported by name."""

STUCK_AFTER = 1800.0
"""Seconds without a call that begins or ends after which a reconcile will never end by itself:
twice the longest that any call may take."""

_SOONEST = 0.01  # seconds: no outcome can make a worker spin on one key


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reconcile returns: when it wants to look again by itself, and why.

    ``after`` is in seconds; None means that only events bring the key back.
    """

    after: float | None = None
    reason: str = ""

    @classmethod
    def at(cls, moment: datetime | None, now: datetime, reason: str) -> Outcome:
        """Return that it wants to look again at ``moment``; None: events alone bring it back."""
        return DONE if moment is None else cls(max(0.0, (moment - now).total_seconds()), reason)

    def sooner(self, other: Outcome) -> Outcome:
        """Return whichever of the two wants to look again first; on a tie, this one."""
        if other.after is None:
            return self
        if self.after is None or other.after < self.after:
            return other
        return self


DONE = Outcome()


def earliest(*outcomes: Outcome) -> Outcome:
    """Return the outcome that wants to look again first; DONE if none does."""
    soonest = DONE
    for outcome in outcomes:
        soonest = soonest.sooner(outcome)
    return soonest


class TerminalError(Exception):
    """Retrying cannot help: do nothing until the object, or something it depends on, changes."""


class StrayCancellation(Exception):
    """A reconcile was cancelled from within: something it called let its own cancellation escape.
    Nobody asked the worker to stop, so it is an error like any other."""


class WorkerEnded(Exception):
    """A worker ended though its queue was not shut down: the controller cannot go on short-handed
    without anybody noticing."""


class Failure(Enum):
    """What an exception from a reconcile means."""

    CONFLICT = auto()
    NOT_LEADING = auto()
    HELD_BACK = auto()
    EXPECTED = auto()
    TERMINAL = auto()
    UNEXPECTED = auto()


_WORST_FIRST = (
    Failure.UNEXPECTED,
    Failure.EXPECTED,
    Failure.NOT_LEADING,
    Failure.CONFLICT,
    Failure.HELD_BACK,
    Failure.TERMINAL,
)


def classify(error: Exception) -> Failure:
    """Say what ``error`` means; of a group, the worst of its members counts.

    Expected are all errors of the client and of drivers, time-outs and lost connections: their text
    says all there is to say.
    """
    if isinstance(error, ExceptionGroup):
        kinds = {classify(member) for member in error.exceptions}
        return next(kind for kind in _WORST_FIRST if kind in kinds)
    if isinstance(error, NotConverging):
        return Failure.HELD_BACK
    if isinstance(error, Conflict | AlreadyExists):
        return Failure.CONFLICT
    if isinstance(error, TerminalError):
        return Failure.TERMINAL
    if isinstance(error, LeadershipLost):
        return Failure.NOT_LEADING
    if isinstance(error, KubeError | DriverError | TimeoutError | ConnectionError):
        return Failure.EXPECTED
    return Failure.UNEXPECTED


def retry_after(error: Exception) -> float:
    """Return the seconds a server asked to wait, the longest in a group; 0 if none did."""
    if isinstance(error, ExceptionGroup):
        return max(retry_after(member) for member in error.exceptions)
    return (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0


@final
class Controller:
    """N workers on one queue. ``reconcile`` is called for one key at a time, never twice at once
    for the same key. ``warn(key, reason, note)`` shows a warning on the object of a key. ``turns``
    is shared with the other controllers of the loop."""

    def __init__(
        self,
        name: str,
        queue: WorkQueue[str],
        reconcile: Callable[[str], Awaitable[Outcome]],
        *,
        workers: int,
        clock: Clock,
        metrics: ControllerMetrics | None = None,
        warn: Callable[[str, str, str], None] | None = None,
        slow_after: float = SLOW_RECONCILE,
        stop_grace: float | None = None,
        tracer: Tracer = NO_TRACES,
        turns: LoopTurns | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"controller {name} needs at least one worker, got {workers}")
        self.name = name
        self.queue = queue
        self._reconcile = reconcile
        self._workers = workers
        self._clock = clock
        self._metrics = metrics.of_controller(name, workers=workers) if metrics else None
        self._warn = warn
        self._slow_after = slow_after
        self._stop_grace = stop_grace
        self.regards = ""
        """The resource (plural) that its keys are keys of; empty: none."""
        self.known_keys: Callable[[], Iterable[str]] = tuple
        """All keys that there are of it."""
        self.admits: Callable[[str], bool] = lambda _: True
        """Whether a key may be reconciled now. One that may not is dropped: whoever refuses it has
        to add it again."""
        self._tracer = tracer
        self._turns = turns or LoopTurns(clock)
        # Which unexpected error was last reported with a traceback, by key.
        self._reported: dict[str, str] = {}
        self._in_work: dict[str, Reconcile] = {}

    async def run(self) -> None:
        """Work until the queue is shut down and empty, or until cancelled.

        After a shutdown the workers finish what is in flight and what is ready. Those that have not
        ended when this is cancelled, or ``stop_grace`` seconds later if that is given, are
        cancelled too, and what they were at is logged.

        Raises WorkerEnded, or a group of what the workers raised, if one ended before the shutdown.
        """
        async with asyncio.TaskGroup() as group:
            workers = [
                group.create_task(self._work(), name=f"{self.name}-worker-{n}")
                for n in range(self._workers)
            ]
            try:
                await self._ended(workers)
            finally:
                # Always in this order, which the group would leave to chance.
                for worker in workers:
                    worker.cancel()

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            try:
                await self._turns.begin()
                await self._process(key)
            finally:
                self.queue.done(key)

    async def _ended(self, workers: list[asyncio.Task[None]]) -> None:
        """Wait for the shutdown, and then for the workers as long as they are given."""
        closed = asyncio.ensure_future(self.queue.wait_shut_down())
        try:
            await asyncio.wait({closed, *workers}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()
        if not self.queue.is_shut_down:
            dead = ", ".join(worker.get_name() for worker in workers if worker.done())
            raise WorkerEnded(f"controller {self.name}: {dead} ended without being asked to")
        try:
            await asyncio.wait(workers, timeout=self._stop_grace)
        finally:
            if late := sum(not worker.done() for worker in workers):
                log.warning(
                    "controller %s: %d workers did not end in time, cancelling; in flight: %s",
                    self.name,
                    late,
                    ", ".join(self.queue.processing) or "none",
                )

    def stuck(self) -> Mapping[str, str]:
        """Return the reconciles that will never end by themselves, and why that is believed.

        However long a provider takes, its calls end; a reconcile that waits for none is lost, and
        with it a worker and a key that nobody else may work on.
        """
        now = self._clock.monotonic()
        still = {key: now - work.progressed_at for key, work in self._in_work.items()}
        return {
            f"{self.name} {key}": f"its reconcile has got nowhere for {seconds:.0f} s"
            for key, seconds in still.items()
            if seconds >= STUCK_AFTER
        }

    async def _process(self, key: str) -> None:
        if not self.admits(key):
            self._reported.pop(key, None)
            self.queue.forget(key)
            return
        begun = self._clock.monotonic()
        with self._traced(key) as span, self._told(key, begun):
            with self._measured(key), reconciling(author_of(self.name, key), begun) as reconcile:
                self._in_work[key] = reconcile
                try:
                    result = self._succeeded(key, _checked(await self._reconcile(key)))
                except asyncio.CancelledError as error:
                    worker = asyncio.current_task()
                    if worker is not None and worker.cancelling():
                        raise  # somebody wants this worker to end
                    stray = StrayCancellation(
                        "cancelled from within, nobody asked the worker to end"
                    )
                    stray.__cause__ = error
                    result = self._failed(key, stray)
                except Exception as error:  # every kind is logged, counted and retried
                    result = self._failed(key, error)
                finally:
                    del self._in_work[key]
            if reconcile.held_for is not None:
                # Whatever else became of the reconcile. Events in between do no harm: what is held
                # back costs no request.
                held_for = max(reconcile.held_for, _SOONEST)
                self.queue.add_after(key, held_for, priority=self.queue.priority(key))
            for note in reconcile.repeated:
                self._tell_repeated(key, note)
            if self._metrics is not None:
                self._metrics.reconciles[result].inc()
            span.set("mcm.result", result.value)

    def _traced(self, key: str) -> AbstractContextManager[Span]:
        if self._tracer is NO_TRACES:
            return NO_TRACES.span("", {})  # what a span is told costs more than it
        traced: Mapping[str, Value] = {
            "mcm.key": key,
            "mcm.queue_wait_seconds": self.queue.waited(key),
        }
        return self._tracer.span(f"reconcile {self.name}", traced)

    def _told(self, key: str, begun: float) -> AbstractContextManager[None]:
        return self._told_at_length(key, begun) if causes.told() else nullcontext()

    @contextmanager
    def _told_at_length(self, key: str, begun: float) -> Iterator[None]:
        """Tell in debug lines why a reconcile is, and for how long."""
        found = causes.causes_of(self.queue, key)
        with correlation.correlated(found[0].name):
            log.debug(
                "%s %s: reconcile begins after %.3f s in the queue, woken by %s",
                self.name,
                key,
                self.queue.waited(key),
                ", ".join(map(str, found)),
            )
            try:
                yield
            finally:
                took = self._clock.monotonic() - begun
                log.debug("%s %s: reconcile ended after %.3f s", self.name, key, took)

    def _succeeded(self, key: str, outcome: Outcome) -> Result:
        self._reported.pop(key, None)
        self.queue.forget(key)
        if outcome.after is None:
            return Result.SUCCESS
        log.debug(
            "%s %s: again in %.3f s (%s)", self.name, key, outcome.after, outcome.reason or "-"
        )
        causes.note_timer(self.queue, key, outcome.reason or "timer")
        self.queue.add_after(key, max(outcome.after, _SOONEST))
        return Result.REQUEUE_AFTER

    def _failed(self, key: str, error: Exception) -> Result:
        failure = classify(error)
        if failure is Failure.CONFLICT:
            delay = self._retry(key, error)
            log.debug("%s %s: %s; again in %.3f s", self.name, key, error, delay)
            return Result.CONFLICT
        if failure is Failure.NOT_LEADING:
            delay = self._retry(key, error)
            log.debug("%s %s: %s; again in %.3f s", self.name, key, one_line(error), delay)
            return Result.ERROR
        if self._metrics is not None:
            self._metrics.errors.inc()
        if failure is Failure.TERMINAL:
            self._reported.pop(key, None)
            self.queue.forget(key)
            log.warning("%s %s: %s; not retried until something changes", self.name, key, error)
            return Result.TERMINAL
        if failure is Failure.HELD_BACK:
            return Result.ERROR  # comes back when the patch may be made
        delay = self._retry(key, error)
        if failure is Failure.UNEXPECTED and self._is_news(key, error):
            log.error(
                "%s %s: unexpected error, again in %.3f s", self.name, key, delay, exc_info=error
            )
        else:
            log.warning("%s %s: %s; again in %.3f s", self.name, key, one_line(error), delay)
        return Result.ERROR

    def _tell_repeated(self, key: str, note: str) -> None:
        if self._metrics is not None:
            self._metrics.repeated.inc()
        if self._warn is not None:
            self._warn(key, "NotConverging", note)
        else:
            log.warning("%s %s: %s", self.name, key, note)

    def _retry(self, key: str, error: Exception) -> float:
        priority = self.queue.priority(key)
        causes.note_retry(self.queue, key, f"retry after {type(error).__name__}")
        return self.queue.add_rate_limited(key, priority=priority, at_least=retry_after(error))

    def _is_news(self, key: str, error: Exception) -> bool:
        """Whether this key's last unexpected error was of another class, or there was none."""
        kind = type(error).__qualname__
        if self._reported.get(key) == kind:
            return False
        self._reported[key] = kind
        return True

    @contextmanager
    def _measured(self, key: str) -> Iterator[None]:
        started = self._clock.monotonic()
        watchdog = _Watchdog(self._slow_after, lambda: self._report_slow(key, started))
        if self._metrics is not None:
            self._metrics.active.inc()
        try:
            yield
        finally:
            watchdog.stop()
            if self._metrics is not None:
                took = self._clock.monotonic() - started
                self._metrics.active.dec()
                self._metrics.duration.observe(took)

    def _report_slow(self, key: str, started: float) -> None:
        running = self._clock.monotonic() - started
        log.warning("%s %s: reconcile still runs after %.0f s", self.name, key, running)
        if self._metrics is not None and running < 2 * self._slow_after:
            self._metrics.slow.inc()


def _checked(outcome: object) -> Outcome:
    """Return what a reconcile returned; raises what is wrong with it."""
    if not isinstance(outcome, Outcome):
        raise TypeError(f"the reconcile returned {type(outcome).__name__}, not an Outcome")
    if outcome.after is not None and not math.isfinite(outcome.after):
        raise ValueError(f"the reconcile wants to look again in {outcome.after} seconds")
    return outcome


@final
class _Watchdog:
    """Calls back after ``period`` seconds, and again after each doubling, until stopped."""

    def __init__(self, period: float, report: Callable[[], None]) -> None:
        self._report = report
        self._period = period
        self._timer = asyncio.get_running_loop().call_later(period, self._bark)

    def stop(self) -> None:
        self._timer.cancel()

    def _bark(self) -> None:
        self._report()
        self._timer = asyncio.get_running_loop().call_later(self._period, self._bark)
        self._period *= 2


def one_line(error: BaseException, *, limit: int = 300) -> str:
    """Return class and text of ``error`` on one line, cut to ``limit`` characters."""
    if isinstance(error, BaseExceptionGroup):
        text = "; ".join(one_line(member) for member in error.exceptions)
    else:
        text = f"{type(error).__name__}: {error}"
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
