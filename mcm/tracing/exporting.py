"""Sends spans to an OpenTelemetry backend by OTLP over HTTP, from a thread of its own.

A backend that is slow or down costs spans and nothing else: what waits for it is bounded, and is
given up when the process ends.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Final, final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, Counter

from mcm.clock import Clock
from mcm.rate_limited_log import RateLimitedLog
from mcm.tracing.tracer import Kind, Span, Tracer, Value

logger = logging.getLogger(__name__)

FLUSH_LIMIT: Final = 2.0
"""Seconds that the last spans have to leave when the process ends."""

_EXPORT_TIMEOUT: Final = 5.0
_MOST_WAITING: Final = 4096
_TRACES: Final = "/v1/traces"
_KINDS: Final = {Kind.INTERNAL: SpanKind.INTERNAL, Kind.CLIENT: SpanKind.CLIENT}
_PROPAGATOR: Final = TraceContextTextMapPropagator()


@final
class TracingMetrics:
    """``result`` is sent or lost."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.spans = Counter(
            "mcm_trace_spans_total",
            "Spans handed to the tracing backend, by whether it took them.",
            ("result",),
            registry=registry,
        )


@final
class _Span:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, name: str, value: Value) -> None:
        self._span.set_attribute(name, value)


@final
class OpenTelemetryTracer:
    """Makes OpenTelemetry's spans by ``provider``."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("mcm")

    def span(
        self, name: str, attributes: Mapping[str, Value], *, kind: Kind = Kind.INTERNAL
    ) -> AbstractContextManager[Span]:
        return self._spanned(name, attributes, kind)

    @contextmanager
    def _spanned(self, name: str, attributes: Mapping[str, Value], kind: Kind) -> Iterator[Span]:
        # Of an error only its class is told: its text is somebody else's.
        with self._tracer.start_as_current_span(
            name,
            kind=_KINDS[kind],
            attributes=dict(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield _Span(span)
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise

    def headers(self) -> Mapping[str, str]:
        carried: dict[str, str] = {}
        _PROPAGATOR.inject(carried)
        return carried


@final
class _ToldOfOnce(SpanExporter):
    """Counts what ``exporter`` sends and loses, and warns once a minute at most."""

    def __init__(self, exporter: SpanExporter, clock: Clock, metrics: TracingMetrics) -> None:
        self._exporter = exporter
        self._log = RateLimitedLog(logger, clock)
        self._metrics = metrics

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # whatever a library raises for a backend in trouble
            logger.debug("spans were lost", exc_info=error)
            result = SpanExportResult.FAILURE
        sent = result is SpanExportResult.SUCCESS
        self._metrics.spans.labels("sent" if sent else "lost").inc(len(spans))
        if not sent:
            self._log.tell("tracing", "the tracing backend did not take spans; they are lost")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


@asynccontextmanager
async def exporting(
    endpoint: str,
    *,
    version: str,
    instance: str,
    clock: Clock,
    metrics: TracingMetrics,
    exporter: SpanExporter | None = None,
) -> AsyncIterator[Tracer]:
    """Export spans to ``endpoint`` while the context lasts; empty: to where the environment says
    (``OTEL_EXPORTER_OTLP_ENDPOINT`` and what else OpenTelemetry specifies)."""
    # It tells of each failure, in three loggers; we do.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    told = _ToldOfOnce(exporter or _otlp(endpoint), clock, metrics)
    resource = Resource.create(
        {"service.name": "mcm", "service.version": version, "service.instance.id": instance}
    )
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(told, max_queue_size=_MOST_WAITING))
    try:
        yield OpenTelemetryTracer(provider)
    finally:
        await _flushed(provider)


def _otlp(endpoint: str) -> OTLPSpanExporter:
    url = None
    if endpoint:
        url = endpoint if endpoint.endswith(_TRACES) else endpoint.rstrip("/") + _TRACES
    return OTLPSpanExporter(endpoint=url, timeout=_EXPORT_TIMEOUT)


async def _flushed(provider: TracerProvider) -> None:
    """Let what waits leave, for a moment. It blocks, so it has a thread, which nobody waits for."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def flush() -> None:
        provider.shutdown()
        if not loop.is_closed():
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=flush, name="last spans", daemon=True).start()
    try:
        async with asyncio.timeout(FLUSH_LIMIT):
            await done.wait()
    except TimeoutError:
        logger.warning("the last spans did not leave within %g s", FLUSH_LIMIT)
