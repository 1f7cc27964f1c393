from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from mcm.api.core import NODES
from mcm.client.client import Client
from mcm.client.errors import (
    ConnectionRefused,
    Forbidden,
    Gone,
    RequestTimeout,
    TooManyRequests,
    TransportError,
)
from mcm.client.metrics import ClientMetrics
from mcm.client.transport import Lane, StreamResponse
from mcm.simulation.virtualtime import run_virtual


async def chunks(*parts: bytes | Exception) -> AsyncIterator[bytes]:
    for part in parts:
        if isinstance(part, Exception):
            raise part
        yield part


def stream(status: int, *parts: bytes | Exception, **headers: str) -> StreamResponse:
    lowered = {name.replace("_", "-"): value for name, value in headers.items()}
    return StreamResponse(status, lowered, chunks(*parts))


def watched(client: Client) -> list[bytes]:
    async def main() -> list[bytes]:
        async with client.watch(
            NODES, resource_version="7", timeout_seconds=300, read_timeout=70
        ) as response:
            return [chunk async for chunk in response.chunks]

    return run_virtual(main)


def test_chunks_come_as_they_are_and_the_stream_is_closed(rig: Any) -> None:
    client, transport = rig(stream(200, b'{"ty', b'pe"'))
    assert watched(client) == [b'{"ty', b'pe"']
    assert transport.streams_open == 0
    request = transport.sent[0]
    assert (request.lane, request.read_timeout, request.timeout) == (Lane.WATCH, 70, 30.0)
    assert request.headers["User-Agent"] == "mcm"


def test_a_refused_watch_raises_what_the_status_says(rig: Any) -> None:
    body = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}'
    client, transport = rig(stream(410, body[:20], body[20:]))
    with pytest.raises(Gone, match="too old"):
        watched(client)
    assert transport.streams_open == 0


def test_a_throttled_watch_says_when_to_come_back_and_is_not_repeated(rig: Any) -> None:
    client, transport = rig(stream(429, b"{}", retry_after="4"))
    with pytest.raises(TooManyRequests) as caught:
        watched(client)
    assert caught.value.retry_after == 4
    assert len(transport.sent) == 1


def test_a_torn_refusal_still_raises_its_status(rig: Any) -> None:
    client, _ = rig(stream(403, b'{"kind":"Sta', TransportError("reset")))
    with pytest.raises(Forbidden):
        watched(client)


def test_an_endless_refusal_is_not_read_to_its_end(rig: Any) -> None:
    client, _ = rig(stream(403, *[b"x" * 40_000] * 2, AssertionError("read too far")))
    with pytest.raises(Forbidden):
        watched(client)


@pytest.mark.parametrize("error", [ConnectionRefused("no"), RequestTimeout("late")])
def test_a_watch_that_does_not_open_is_the_watchers_to_repeat(
    error: TransportError, rig: Any
) -> None:
    client, transport = rig(error)
    with pytest.raises(type(error)):
        watched(client)
    assert len(transport.sent) == 1


def test_silence_in_the_stream_reaches_the_watcher(rig: Any) -> None:
    client, transport = rig(stream(200, b"{}", RequestTimeout("silent")))
    with pytest.raises(RequestTimeout):
        watched(client)
    assert transport.streams_open == 0


def test_watches_take_no_slot_and_no_token(rig: Any) -> None:
    client, transport = rig(
        stream(200), stream(200), stream(200), max_in_flight=1, qps=0.001, burst=1
    )

    async def main() -> None:
        watch = dict[str, Any](timeout_seconds=300, read_timeout=70)
        async with (
            client.watch(NODES, **watch),
            client.watch(NODES, **watch),
            client.watch(NODES, **watch),
        ):
            assert transport.streams_open == 3

    run_virtual(main)


def test_watches_are_counted_once_opened_or_failed(rig: Any) -> None:
    registry = CollectorRegistry()
    client, _ = rig(
        stream(200), ConnectionRefused("no"), stream(403), metrics=ClientMetrics(registry)
    )
    watched(client)
    with pytest.raises(ConnectionRefused):
        watched(client)
    with pytest.raises(Forbidden):
        watched(client)
    for code in ("200", "<error>", "403"):
        labels = {"code": code, "method": "GET", "resource": "nodes"}
        assert registry.get_sample_value("rest_client_requests_total", labels) == 1
