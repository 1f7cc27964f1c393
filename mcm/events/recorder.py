"""The recorder that controllers hold, and its sender task."""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Mapping
from typing import Protocol, final

from prometheus_client import CollectorRegistry

from mcm.api.meta import Resource, T
from mcm.client.errors import (
    AlreadyExists,
    ApiError,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from mcm.client.verbs import ObjectWriter
from mcm.clock import Clock
from mcm.events import wire
from mcm.events.correlator import SWEEP_SECONDS, Correlator, Drop, Series
from mcm.events.metrics import EventMetrics
from mcm.events.wire import CORE_EVENTS, EVENTS, EventKind, Tally
from mcm.leaderelection import LeadershipLost
from mcm.metrics import once_per_registry
from mcm.workqueue.backoff import Backoff, longer_by

log = logging.getLogger(__name__)

_TRIES = 12
_BACKOFF = Backoff(1.0, 30.0, spread=longer_by(0.25))
_FLUSH_SECONDS = 5.0


class EventSink(Protocol):
    """Where whoever has something to tell of an object says it."""

    def event(
        self,
        resource: Resource[T],
        obj: T,
        kind: EventKind,
        reason: str,
        note: str,
        *,
        action: str = "Reconcile",
    ) -> None:
        """Record that something happened to ``obj``, and log it. Never blocks, never raises.

        ``reason`` and ``action`` are short CamelCase words, ``note`` is a sentence for people.
        """
        ...


@final
class EventRecorder(EventSink):
    """Records events as ``component`` running on ``host``; see the package for its promises.

    What is recorded before :meth:`run` runs waits in the outbox. Notes must hold no secrets: they
    are shown to everybody who may list events.
    """

    def __init__(
        self,
        client: ObjectWriter,
        *,
        clock: Clock,
        component: str,
        host: str,
        randomness: random_module.Random | None = None,
        registry: CollectorRegistry | None = None,
        flush_seconds: float = _FLUSH_SECONDS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._by = wire.reporter(component, host)
        self._random = randomness or random_module.Random()
        self._flush_seconds = flush_seconds
        self._correlator = Correlator()
        self._wake = asyncio.Event()
        self._core_only = False
        self._failures = 0  # writes in a row that found the server out of reach
        self._metrics: EventMetrics | None = None
        self._drops_reported: dict[Drop, int] = {}
        self._fenced_off = False  # and said so
        if registry is not None:
            self._metrics = once_per_registry(registry, EventMetrics)

    @property
    def dropped(self) -> Mapping[Drop, int]:
        """How many occurrences will not be found in the API, by reason."""
        return dict(self._correlator.dropped)

    def event(
        self,
        resource: Resource[T],
        obj: T,
        kind: EventKind,
        reason: str,
        note: str,
        *,
        action: str = "Reconcile",
    ) -> None:
        try:
            what = wire.occurrence(wire.regarding(resource, obj), kind, reason, note, action)
            now, wall = self._clock.monotonic(), self._clock.now()
            self._correlator.record(what, now=now, wall=wall)
        except Exception:  # an event must never cost a reconcile
            log.exception("event %s could not be recorded", reason)
            self._correlator.recorded += 1
            self._correlator.dropped[Drop.ERROR] += 1
            return
        level = logging.WARNING if what.type.value == "Warning" else logging.INFO
        log.log(level, "%s %s: %s (%s)", resource.kind, obj.metadata.key, note, reason)
        if self._metrics is not None:
            self._metrics.recorded.labels(what.type.value).inc()
        self._wake.set()

    async def run(self) -> None:
        """Write until cancelled; then flush within the time limit."""
        try:
            while True:
                await self._work_arrives()
                self._correlator.sweep(self._clock.monotonic())
                while (series := self._correlator.head()) is not None:
                    await self._settle(series)
                self._report_drops()
        finally:
            await self._flush()

    async def _work_arrives(self) -> None:
        """Wait for a recorded event, or for the next sweep if there is anything to sweep."""
        limit = SWEEP_SECONDS if self._correlator.needs_sweep else None
        try:
            async with asyncio.timeout(limit):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    async def _flush(self) -> None:
        self._correlator.finish(self._clock.monotonic())
        try:
            async with asyncio.timeout(self._flush_seconds):
                while (series := self._correlator.head()) is not None:
                    await self._settle(series)
        except TimeoutError:
            log.warning("events: not all were written before the end")
        finally:
            self._correlator.close()
            self._report_drops()

    async def _settle(self, series: Series) -> None:
        """Write ``series`` or give it up; else it stays at the head and its turn comes again."""
        for _ in range(_TRIES):
            try:
                await self._write(series)
            except AlreadyExists:
                self._correlator.rename(series, self._clock.now())
            except (TransportError, ServerError, TooManyRequests, Unauthorized) as error:
                await self._pause(error)
            except LeadershipLost as error:
                self._fence_off(series, error)
                return
            except KubeError as error:
                self._give_up(series, Drop.REJECTED, error)
                return
            except Exception as error:  # what is wrong with one event must not silence all
                log.exception("event %s could not be written", series.name)
                self._give_up(series, Drop.ERROR, error)
                return
            else:
                self._failures = 0
                self._fenced_off = False
                return
        self._give_up(series, Drop.UNREACHABLE, f"gave up after {_TRIES} tries")

    def _give_up(self, series: Series, why: Drop, cause: object) -> None:
        log.warning("event %s (%s) not written: %s", series.name, series.what.reason, cause)
        self._correlator.lost(series, why)

    def _fence_off(self, series: Series, error: LeadershipLost) -> None:
        """As long as nothing may be written, one line says so, not one for each event."""
        if not self._fenced_off:
            log.warning("events can no longer be written: %s", error)
        self._fenced_off = True
        self._correlator.lost(series, Drop.REJECTED)

    async def _pause(self, error: KubeError) -> None:
        """Wait before the next try of whatever it may be: it is the server that is in trouble."""
        pause = _BACKOFF.delay(self._failures, self._random.random())
        if isinstance(error, ApiError) and error.retry_after is not None:
            pause = max(pause, error.retry_after)
        self._failures += 1
        log.debug("events: %s; again in %.1f s", error, pause)
        await self._clock.sleep(pause)

    async def _write(self, series: Series) -> None:
        tally = series.tally()
        verb = "patch" if series.saved else "create"
        if series.saved:
            try:
                await self._patch(series, tally)
            except NotFound:  # it expired
                self._correlator.expired(series, self._clock.monotonic(), self._clock.now())
                return
        else:
            await self._create(series, tally)
        self._correlator.saved(series, tally.count, self._clock.monotonic())
        if self._metrics is not None:
            self._metrics.writes.labels(verb).inc()

    async def _create(self, series: Series, tally: Tally) -> None:
        tried_before, series.sent = series.sent, True
        try:
            await self._create_served(series, tally)
        except AlreadyExists:
            if not tried_before:
                raise
            # An earlier try arrived, though its answer did not; perhaps with a smaller count.
            if tally.count > 1:
                await self._patch(series, tally)

    async def _create_served(self, series: Series, tally: Tally) -> None:
        what, namespace = series.what, series.what.regarding.event_namespace
        if not self._core_only:
            body = wire.event_body(what, tally, series.name, self._by)
            try:
                await self._client.create(EVENTS, body, namespace=namespace)
                return
            except NotFound as error:
                if error.message.startswith("namespaces "):
                    raise
            log.info("events.k8s.io/v1 is not served here, falling back to v1")
            self._core_only = True
        body = wire.core_event_body(what, tally, series.name, self._by)
        await self._client.create(CORE_EVENTS, body, namespace=namespace)

    async def _patch(self, series: Series, tally: Tally) -> None:
        resource, patch = EVENTS, wire.series_patch(tally)
        if self._core_only:
            resource, patch = CORE_EVENTS, wire.core_count_patch(tally)
        namespace = series.what.regarding.event_namespace
        await self._client.patch(resource, series.name, patch, namespace=namespace)

    def _report_drops(self) -> None:
        for reason, total in self._correlator.dropped.items():
            fresh = total - self._drops_reported.get(reason, 0)
            self._drops_reported[reason] = total
            if fresh:
                log.info("events: %d dropped: %s", fresh, reason.value)
            if fresh and self._metrics is not None:
                self._metrics.dropped.labels(reason.value).inc(fresh)
