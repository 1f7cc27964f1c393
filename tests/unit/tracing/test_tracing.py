"""Spans of reconciles, requests and driver calls, and what becomes of them at a backend."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Event
from threading import enumerate as enumerate_threads

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from mcm.api.machine import MACHINES
from mcm.client.client import Client
from mcm.client.errors import Forbidden
from mcm.client.transport import Request, Response, Transport
from mcm.clock import SystemClock
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.http_server import Limits, listening, read_body
from mcm.tracing import Tracer
from mcm.tracing.exporting import FLUSH_LIMIT, TracingMetrics, exporting
from mcm.workqueue import WorkQueue

CLOCK = SystemClock()


class Server(Transport):
    """Answers each request the same, and keeps it."""

    def __init__(self, status: int, body: bytes) -> None:
        self.answer = Response(status, {}, body)
        self.requests: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.requests.append(request)
        return self.answer

    def stream(self, request: Request) -> None:  # type: ignore[override]
        raise AssertionError("nothing is watched here")

    async def aclose(self) -> None:
        pass


class Field:
    def __init__(self, exporter: SpanExporter | None = None, endpoint: str = "") -> None:
        self.registry = CollectorRegistry()
        self.exporter = exporter
        self.endpoint = endpoint
        self.server = Server(200, b'{"metadata":{"name":"m-1","namespace":"default"}}')
        self.tracer: Tracer

    @asynccontextmanager
    async def traced(self) -> AsyncIterator[None]:
        async with exporting(
            self.endpoint,
            version="1",
            instance="me",
            clock=CLOCK,
            metrics=TracingMetrics(self.registry),
            exporter=self.exporter,
        ) as self.tracer:
            yield

    def client(self) -> Client:
        return Client(self.server, clock=CLOCK, random=random.Random(1), tracer=self.tracer)

    async def reconcile(self, act: Callable[[str], object]) -> None:
        """Have a controller take one key, and end."""
        queue: WorkQueue[str] = WorkQueue("machine", clock=CLOCK)

        begun = asyncio.Event()

        async def reconcile(key: str) -> Outcome:
            begun.set()
            result = act(key)
            if asyncio.iscoroutine(result):
                await result
            return DONE

        controller = Controller(
            "machine", queue, reconcile, workers=1, clock=CLOCK, tracer=self.tracer
        )
        queue.add("default/m-1")
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            group.create_task(controller.run())
            await begun.wait()
            queue.shut_down()

    def lost(self, result: str = "lost") -> float:
        return self.registry.get_sample_value("mcm_trace_spans_total", {"result": result}) or 0.0


async def test_a_request_belongs_to_the_reconcile_that_makes_it_and_tells_the_server() -> None:
    memory = InMemorySpanExporter()
    field = Field(memory)
    async with field.traced():
        client = field.client()
        await field.reconcile(lambda _: client.get(MACHINES, "m-1", namespace="default"))
    spans = {span.name: span for span in memory.get_finished_spans()}
    assert set(spans) == {"reconcile machine", "GET machines.machine.sapcloud.io"}
    reconcile, request = spans["reconcile machine"], spans["GET machines.machine.sapcloud.io"]
    assert reconcile.attributes is not None and request.attributes is not None
    assert reconcile.attributes["mcm.key"] == "default/m-1"
    assert reconcile.attributes["mcm.result"] == "success"
    assert isinstance(reconcile.attributes["mcm.queue_wait_seconds"], float)
    assert request.attributes["http.response.status_code"] == 200
    assert request.parent is not None and reconcile.context is not None
    assert request.parent.span_id == reconcile.context.span_id
    assert request.context is not None
    trace, span = request.context.trace_id, request.context.span_id
    sent = field.server.requests[0].headers["traceparent"]
    assert sent.startswith(f"00-{trace:032x}-{span:016x}-0")
    assert field.lost("sent") == 2


async def test_what_goes_wrong_is_told_by_its_class_and_never_in_its_words() -> None:
    memory = InMemorySpanExporter()
    field = Field(memory)
    field.server.answer = Response(
        403, {}, b'{"kind":"Status","status":"Failure","code":403,"message":"token s3cret"}'
    )
    async with field.traced():
        client = field.client()
        with pytest.raises(Forbidden):
            await client.get(MACHINES, "m-1", namespace="default")
        with pytest.raises(ValueError), field.tracer.span("create_machine", {}):
            raise ValueError("password s3cret")
    told = "".join(span.to_json() for span in memory.get_finished_spans())
    assert "403" in told and "ValueError" in told
    assert "s3cret" not in told


async def test_spans_reach_a_backend_by_otlp(caplog: pytest.LogCaptureFixture) -> None:
    received: list[ExportTraceServiceRequest] = []

    async def sink(request: web.BaseRequest) -> web.Response:
        assert request.path == "/v1/traces"
        received.append(ExportTraceServiceRequest.FromString(await read_body(request, Limits())))
        return web.Response()

    async with listening(sink, host="127.0.0.1", port=0, clock=CLOCK) as port:
        field = Field(endpoint=f"http://127.0.0.1:{port}")
        async with field.traced():
            with field.tracer.span("drain pass", {"k8s.node.name": "n-1"}):
                pass
    (resource,) = received[0].resource_spans
    assert {a.key: a.value.string_value for a in resource.resource.attributes}[
        "service.name"
    ] == "mcm"
    assert resource.scope_spans[0].spans[0].name == "drain pass"
    assert field.lost("sent") == 1 and not caplog.text


class Hanging(SpanExporter):
    """A backend that takes for ever."""

    def __init__(self) -> None:
        self.free = Event()

    def export(self, spans: object) -> SpanExportResult:
        self.free.wait(30)
        return SpanExportResult.FAILURE


async def test_a_backend_that_hangs_holds_up_neither_reconciles_nor_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = Hanging()
    field = Field(backend)
    started = CLOCK.monotonic()
    async with field.traced():
        for _ in range(10_000):  # more than may wait
            with field.tracer.span("reconcile", {}):
                pass
    assert CLOCK.monotonic() - started < FLUSH_LIMIT + 15
    assert "the last spans did not leave" in caplog.text
    backend.free.set()
    for thread in enumerate_threads():  # what it still says belongs to no other test
        if thread.name == "last spans":
            await asyncio.to_thread(thread.join, 30)


async def test_a_backend_that_is_down_costs_spans_and_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Down(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            raise ConnectionError("refused")

    field = Field(Down())
    async with field.traced():
        for _ in range(1500):
            with field.tracer.span("reconcile", {}):
                pass
    assert field.lost() == 1500
    lines = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(lines) == 1 and "did not take spans" in lines[0].getMessage()
