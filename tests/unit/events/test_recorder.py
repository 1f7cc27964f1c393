"""The recorder and its sender on virtual time, against an event API with faults."""

from __future__ import annotations

import asyncio
import functools
import json
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import KubeObject, ObjectMeta, Resource
from mcm.client.client import Client
from mcm.client.errors import (
    ApiError,
    ConnectionRefused,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
)
from mcm.client.requests import Call, collection_path
from mcm.client.transport import Request, Response
from mcm.client.verbs import ObjectWriter
from mcm.clock import LoopClock
from mcm.events import CORE_EVENTS, EVENTS, EventRecorder, EventType
from mcm.events.correlator import Drop
from mcm.leaderelection import LeadershipLost
from mcm.sandbox.apiserver.server import ApiServer, ServerSettings
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.virtualtime import run_virtual

R = TypeVar("R")

CLOCK = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))

Fault = Callable[[str], Exception | None]
"""Given "before" or "after" the effect of a request: what goes wrong, if anything."""


def virtual(test: Callable[..., Coroutine[object, object, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**fixtures: object) -> None:
        run_virtual(lambda: test(**fixtures))

    return run


class EventApi(ObjectWriter):
    """The sandbox's API server, slow or failing at will; lists the requests with their times."""

    def __init__(self) -> None:
        self.served: set[Resource[Any]] = {EVENTS, CORE_EVENTS}
        self.requests: list[tuple[float, str]] = []
        self.fault: Fault = lambda when: None
        self.latency = 0.0

    @cached_property
    def _server(self) -> ApiServer:
        """Begun with the first request: it asks the clock, which needs a loop."""
        forever = ServerSettings(event_lifetime=float("inf"))
        server = ApiServer(clock=CLOCK, random=random.Random(1), settings=forever)
        namespace = Request("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"ns"}}')
        server.respond(namespace)
        return server

    @cached_property
    def _client(self) -> Client:
        return Client(LoopbackTransport(self._server), clock=CLOCK)

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        await self._arrive(call.verb.lower())
        if call.resource not in self.served:
            raise NotFound(404, "", "404 page not found")
        answer = await self._client.perform(call, read)
        if (error := self.fault("after")) is not None:
            raise error
        return answer

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask past all faults; insist on success."""
        encoded = json.dumps(body).encode() if body is not None else b""
        answer = self._server.respond(Request(method, path, body=encoded))
        assert isinstance(answer, Response) and answer.status < 300, answer
        document: dict[str, Any] = json.loads(answer.body)
        return document

    @property
    def path(self) -> str:
        """Of the events, in the form in which they are written."""
        return collection_path(EVENTS if EVENTS in self.served else CORE_EVENTS, "ns")

    @property
    def events(self) -> dict[str, dict[str, Any]]:
        """What is stored, by name."""
        return {e["metadata"]["name"]: e for e in self.send("GET", self.path)["items"]}

    async def _arrive(self, verb: str) -> None:
        await CLOCK.sleep(self.latency)
        self.requests.append((CLOCK.monotonic(), verb))
        if (error := self.fault("before")) is not None:
            raise error

    @property
    def times(self) -> list[float]:
        return [when for when, _ in self.requests]

    def counts(self) -> list[int]:
        """How often each event is said to have happened."""
        return [
            int(event["count"] if "count" in event else event.get("series", {}).get("count", 1))
            for event in self.events.values()
        ]


def anothers(name: str) -> dict[str, Any]:
    involved = {"kind": "Machine", "namespace": "ns", "name": "m"}
    return {"metadata": {"name": name}, "involvedObject": involved, "message": "another's"}


def machine(name: str = "m") -> Machine:
    return Machine(metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"))


def new_recorder(api: EventApi, registry: CollectorRegistry | None = None) -> EventRecorder:
    return EventRecorder(
        api,
        clock=CLOCK,
        component="mcm",
        host="host",
        randomness=random.Random(1),
        registry=registry,
    )


def tell(
    recorder: EventRecorder, reason: str = "Created", name: str = "m", note: str = "n"
) -> None:
    recorder.event(MACHINES, machine(name), EventType.NORMAL, reason, note)


async def stop(running: asyncio.Task[None]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@virtual
async def test_an_event_is_written_soon() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    running = asyncio.create_task(recorder.run())
    await CLOCK.sleep(5)
    recorder.event(MACHINES, machine(), "Warning", "FailedCreate", "quota", action="Create")
    await CLOCK.sleep(0.001)
    (event,) = api.events.values()
    assert event["reason"] == "FailedCreate"
    assert event["note"] == "quota"
    assert event["action"] == "Create"
    assert event["type"] == "Warning"
    assert event["regarding"]["uid"] == "uid-m"
    assert event["eventTime"] == "2026-01-01T00:00:05.000000Z"
    assert event["reportingController"] == "mcm"
    await stop(running)


@virtual
async def test_events_recorded_before_the_sender_runs_are_not_lost() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    tell(recorder)
    tell(recorder)
    running = asyncio.create_task(recorder.run())
    await CLOCK.sleep(1)
    assert api.counts() == [2] and len(api.requests) == 1
    await stop(running)


@virtual
async def test_repeats_become_a_series() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    running = asyncio.create_task(recorder.run())
    for _ in range(8):
        tell(recorder)
        await CLOCK.sleep(1)
    assert api.counts() == [8]
    assert [verb for _, verb in api.requests] == ["create", "patch", "patch", "patch"]
    (event,) = api.events.values()
    assert event["series"]["lastObservedTime"] == "2026-01-01T00:00:07.000000Z"
    await stop(running)


@virtual
async def test_an_event_that_does_not_repeat_costs_one_request() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    running = asyncio.create_task(recorder.run())
    tell(recorder)
    await CLOCK.sleep(3600)
    assert len(api.requests) == 1
    await stop(running)
    assert len(api.requests) == 1


@virtual
async def test_the_count_of_a_series_is_completed_when_it_ends() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    running = asyncio.create_task(recorder.run())
    for _ in range(7):
        tell(recorder)
        await CLOCK.sleep(1)
    assert api.counts() == [4]
    await CLOCK.sleep(480)
    assert api.counts() == [7]
    await stop(running)


@virtual
async def test_an_outage_is_waited_out_with_growing_pauses() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    api.fault = lambda when: ConnectionRefused("no") if CLOCK.monotonic() < 60 else None
    running = asyncio.create_task(recorder.run())
    tell(recorder)
    await CLOCK.sleep(200)
    assert api.counts() == [1]
    pauses = [b - a for a, b in zip(api.times, api.times[1:], strict=False)]
    for expected, pause in zip((1, 2, 4, 8, 16, 30), pauses, strict=True):
        assert expected <= pause <= expected * 1.25
    await stop(running)


@virtual
async def test_an_event_is_given_up_after_twelve_tries(caplog: pytest.LogCaptureFixture) -> None:
    api = EventApi()
    recorder = new_recorder(api)
    api.fault = lambda when: ServerError(503)
    running = asyncio.create_task(recorder.run())
    tell(recorder)
    await CLOCK.sleep(1000)
    assert len(api.requests) == 12
    assert recorder.dropped == {Drop.UNREACHABLE: 1}
    assert "gave up after 12 tries" in caplog.text
    await stop(running)


@virtual
async def test_the_servers_retry_after_is_obeyed() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    errors = iter([TooManyRequests(429, retry_after=45.0)])
    api.fault = lambda when: next(errors, None)
    running = asyncio.create_task(recorder.run())
    tell(recorder)
    await CLOCK.sleep(100)
    assert api.times == [0, 45]
    await stop(running)


@pytest.mark.parametrize("error", [Forbidden(403), Invalid(422), LeadershipLost("gone")])
def test_a_refused_event_is_dropped_at_once(error: Exception) -> None:
    @virtual
    async def scenario() -> None:
        api = EventApi()
        recorder = new_recorder(api)
        errors = iter([error])
        api.fault = lambda when: next(errors, None)
        running = asyncio.create_task(recorder.run())
        tell(recorder, name="a")
        tell(recorder, name="b")
        await CLOCK.sleep(1)
        assert recorder.dropped == {Drop.REJECTED: 1}
        assert [e["regarding"]["name"] for e in api.events.values()] == ["b"]
        await stop(running)

    scenario()


@virtual
async def test_a_closed_fence_costs_one_line_however_many_events_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = EventApi()
    recorder = new_recorder(api)
    loss = LeadershipLost("not leading: lease ns/a is held by b")
    api.fault = lambda when: loss
    for n in range(20):
        tell(recorder, name=f"m{n}")
    caplog.clear()
    running = asyncio.create_task(recorder.run())
    await CLOCK.sleep(1)
    await stop(running)
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [
        "events can no longer be written: not leading: lease ns/a is held by b"
    ]
    assert recorder.dropped == {Drop.REJECTED: 20}


@virtual
async def test_an_error_of_ours_costs_one_event_only(caplog: pytest.LogCaptureFixture) -> None:
    api = EventApi()
    recorder = new_recorder(api)
    errors = iter([ZeroDivisionError()])
    api.fault = lambda when: next(errors, None)
    running = asyncio.create_task(recorder.run())
    tell(recorder, name="a")
    tell(recorder, name="b")
    await CLOCK.sleep(1)
    assert recorder.dropped == {Drop.ERROR: 1}
    assert len(api.events) == 1
    assert "ZeroDivisionError" in caplog.text
    await stop(running)


@virtual
async def test_the_older_api_is_used_where_the_newer_is_not_served() -> None:
    api = EventApi()
    api.served = {CORE_EVENTS}
    recorder = new_recorder(api)
    running = asyncio.create_task(recorder.run())
    for _ in range(2):
        tell(recorder)
        await CLOCK.sleep(1)
    (event,) = api.events.values()
    assert event["involvedObject"]["name"] == "m"
    assert event["count"] == 2
    assert event["lastTimestamp"] == "2026-01-01T00:00:01Z"
    assert [verb for _, verb in api.requests] == ["create", "create", "patch"], "asked once only"
    await stop(running)


@virtual
async def test_a_missing_namespace_is_no_reason_to_use_the_older_api() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    errors = iter([NotFound(404, "NotFound", 'namespaces "ns" not found')])
    api.fault = lambda when: next(errors, None)
    running = asyncio.create_task(recorder.run())
    tell(recorder, name="a")
    tell(recorder, name="b")
    await CLOCK.sleep(1)
    (event,) = api.events.values()
    assert "regarding" in event
    assert recorder.dropped == {Drop.REJECTED: 1}
    await stop(running)


@virtual
async def test_an_event_that_expired_is_created_anew() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    running = asyncio.create_task(recorder.run())
    tell(recorder)
    await CLOCK.sleep(1)
    (old,) = api.events
    api.send("DELETE", api.path)
    tell(recorder)
    await CLOCK.sleep(1)
    (new,) = api.events
    assert new != old and api.counts() == [1]
    await stop(running)


@virtual
async def test_a_creation_whose_answer_got_lost_is_not_written_twice() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    errors = iter([TransportError("reset")])
    api.fault = lambda when: next(errors, None) if when == "after" else None
    running = asyncio.create_task(recorder.run())
    tell(recorder)
    await CLOCK.sleep(0.5)
    tell(recorder)  # the event on the server does not know of this one
    await CLOCK.sleep(10)
    assert api.counts() == [2]
    assert not recorder.dropped
    await stop(running)


@virtual
async def test_a_name_that_is_taken_is_given_up_for_another() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    stamp = int(CLOCK.now().timestamp() * 1e6)
    api.send("POST", collection_path(CORE_EVENTS, "ns"), anothers(f"m.{stamp:x}"))
    running = asyncio.create_task(recorder.run())
    tell(recorder)
    await CLOCK.sleep(1)
    assert len(api.events) == 2
    await stop(running)


@virtual
async def test_cancelling_flushes_what_is_left() -> None:
    api = EventApi()
    api.latency = 0.1
    recorder = new_recorder(api)
    running = asyncio.create_task(recorder.run())
    for _ in range(7):
        tell(recorder, name="repeated")
    for n in range(5):
        tell(recorder, name=f"m{n}")
    await CLOCK.sleep(0.35)  # in the middle of the fourth
    await stop(running)
    assert sorted(api.counts()) == [1, 1, 1, 1, 1, 7]
    assert not recorder.dropped
    assert CLOCK.monotonic() < 2


@virtual
async def test_flushing_completes_the_counts() -> None:
    api = EventApi()
    recorder = new_recorder(api)
    running = asyncio.create_task(recorder.run())
    for _ in range(7):
        tell(recorder)
        await CLOCK.sleep(1)
    assert api.counts() == [4]
    await stop(running)
    assert api.counts() == [7]


@virtual
async def test_flushing_ends_in_time_when_nobody_answers() -> None:
    api = EventApi()
    api.fault = lambda when: ConnectionRefused("no")
    recorder = new_recorder(api)
    tell(recorder, name="a")
    tell(recorder, name="b")
    running = asyncio.create_task(recorder.run())
    await CLOCK.sleep(1)
    await stop(running)
    assert CLOCK.monotonic() == 6
    assert recorder.dropped == {Drop.SHUTDOWN: 2}


def test_recording_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    recorder = new_recorder(EventApi())
    broken: KubeObject = cast("KubeObject", None)

    @virtual
    async def scenario() -> None:
        recorder.event(MACHINES, machine(), "Error", "R", "n")  # type: ignore[arg-type]
        recorder.event(cast("Resource[KubeObject]", MACHINES), broken, "Normal", "R", "n")

    scenario()
    assert recorder.dropped == {Drop.ERROR: 2}
    assert "could not be recorded" in caplog.text


@virtual
async def test_metrics_count_calls_writes_and_drops() -> None:
    api, registry = EventApi(), CollectorRegistry()
    recorder = new_recorder(api, registry)
    running = asyncio.create_task(recorder.run())
    for n in range(30):
        tell(recorder, reason=f"R{n}")
    await CLOCK.sleep(1)
    tell(recorder, name="other")
    await CLOCK.sleep(1)
    tell(recorder, name="other")
    await CLOCK.sleep(1)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"mcm_events_{name}_total", labels)

    assert value("recorded", type="Normal") == 32
    assert value("writes", verb="create") == 26
    assert value("writes", verb="patch") == 1
    assert value("dropped", reason="spam") == 5
    assert value("dropped", reason="full") == 0
    await stop(running)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_the_server_does_every_call_is_told_or_counted(seed: int) -> None:
    """E2, end to end: lost requests, lost answers, overload, refusals."""
    chance = random.Random(seed)

    async def scenario() -> None:
        api = EventApi()
        troubles: list[ApiError | TransportError] = [
            TransportError("reset"),
            ConnectionRefused("no"),
            ServerError(500),
            TooManyRequests(429, retry_after=3.0),
        ]

        def fault(when: str) -> Exception | None:
            if chance.random() < 0.1:
                return TransportError("reset") if when == "after" else chance.choice(troubles)
            if when == "before" and chance.random() < 0.03:
                return Invalid(422)
            return None

        api.fault = fault
        api.latency = 0.02
        recorder = new_recorder(api)
        running = asyncio.create_task(recorder.run())
        calls = 0
        for _ in range(150):
            for _ in range(chance.choice([1, 1, 1, 5])):
                calls += 1
                tell(recorder, name=chance.choice("abc"), reason=chance.choice(["R", "S"]))
            await CLOCK.sleep(chance.expovariate(1 / 20))
        await CLOCK.sleep(3600)
        api.fault = lambda when: None
        await stop(running)
        told = sum(api.counts())
        dropped = sum(recorder.dropped.values())
        # A refused patch may follow one whose answer was lost: then it is told and dropped.
        assert told <= calls <= told + dropped

    run_virtual(scenario)
