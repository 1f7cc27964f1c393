"""What a mirror asks a server for, and that it holds what the server has: with lists that are
streamed, and with pages where a server does not offer that."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.meta import Resource, T
from mcm.client.client import Client
from mcm.client.http import HTTPTransport
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectReader
from mcm.clock import SystemClock
from mcm.informers import Change, Informer, ReflectorOptions
from tests.envtest import assets
from tests.envtest.bench import Bench
from tests.envtest.contract.objects import machine, node
from tests.envtest.control_plane import ControlPlane

R = TypeVar("R")

SMALL_PAGES = ReflectorOptions(page_size=4, backoff_base=0.01)
STREAM = "stream"


class Asked(ObjectReader):
    """A client that remembers what was asked for. Of ``faults`` each is the end of a watch in the
    moment in which more of it comes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.requests: list[str] = []
        self.faults: deque[Exception] = deque()

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        self.requests.append("page")
        return await self._client.perform(call, read)

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        query: Mapping[str, str] = dict(call.query)
        self.requests.append(STREAM if "sendInitialEvents" in query else "watch")
        return self._followed(call, read_timeout)

    @asynccontextmanager
    async def _followed(
        self, call: Call, read_timeout: float | None
    ) -> AsyncIterator[StreamResponse]:
        async with self._client.follow(call, read_timeout=read_timeout) as response:
            yield StreamResponse(response.status, response.headers, self._cut(response))

    async def _cut(self, response: StreamResponse) -> AsyncIterator[bytes]:
        async for chunk in response.chunks:
            if self.faults:
                raise self.faults.popleft()
            yield chunk


@asynccontextmanager
async def mirrored(
    source: Asked, resource: Resource[T], namespace: str = ""
) -> AsyncIterator[tuple[Informer[T], list[Change[T]]]]:
    """Yield a synced informer and what it has told."""
    informer = Informer(
        source,
        resource,
        clock=SystemClock(),
        namespace=namespace,
        options=SMALL_PAGES,
        randomness=random.Random(0),
    )
    told: list[Change[T]] = []
    informer.add_handler(told.append)
    running = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(30):
            await informer.wait_synced()
            yield informer, told
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await SystemClock().sleep(0.02)


async def test_the_first_list_is_streamed_and_its_stream_goes_on(api: Bench) -> None:
    for n in range(10):
        await api.create(api.machines(), machine(f"m{n}"))
    source = Asked(api.client)
    async with mirrored(source, MACHINES, api.namespace) as (informer, told):
        assert [c.object.metadata.name for c in told] == [f"m{n}" for n in range(10)]
        assert all(change.initial for change in told)
        version = informer.store.resource_version
        made = await api.create(api.machines(), machine("later"))
        await until(lambda: len(told) == 11)
        assert not told[-1].initial
        assert informer.store.resource_version == made["metadata"]["resourceVersion"]
        assert int(version) < int(informer.store.resource_version)
    assert source.requests == [STREAM]


async def test_an_empty_list_is_streamed_too(api: Bench) -> None:
    source = Asked(api.client)
    async with mirrored(source, MACHINES, api.namespace) as (informer, told):
        assert told == []
        assert informer.store.resource_version
    assert source.requests == [STREAM]


async def test_a_lost_history_is_made_good_by_a_streamed_list(api: Bench) -> None:
    for n in range(10):
        await api.create(api.machines(), machine(f"m{n}"))
    source = Asked(api.client)
    async with mirrored(source, MACHINES, api.namespace) as (informer, told):
        before = {m.metadata.name: m for m in informer.store.list()}
        told.clear()
        source.faults.append(_broken())
        await api.delete(api.machines("m0"))
        await api.patch(api.machines("m1"), {"spec": {"providerID": "p"}})
        await api.create(api.machines(), machine("later"))
        await until(lambda: len(told) == 3)
        after = {m.metadata.name: m for m in informer.store.list()}
        assert {c.object.metadata.name for c in told} == {"m0", "m1", "later"}
        assert "m0" not in after
        assert after["m1"].spec.provider_id == "p"
        assert all(after[f"m{n}"] is before[f"m{n}"] for n in range(2, 10))
    assert source.requests == [STREAM, STREAM]


def _broken() -> Exception:
    """What makes a reflector list again, whatever came before it."""
    return ValueError("the history is lost")


@pytest.mark.envtest
async def test_a_server_without_streamed_lists_says_so_and_is_asked_for_pages(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    binaries = assets.locate()
    folder = tmp_path_factory.mktemp("without-streams")
    plane = ControlPlane(binaries, folder, apiserver_flags=["--feature-gates=WatchList=false"])
    await plane.start()
    client = Client(HTTPTransport(plane.spec(), clock=SystemClock()), clock=SystemClock())
    try:
        for n in range(10):
            await client.create(NODES, node(f"n{n}"))
        source = Asked(client)
        async with mirrored(source, NODES) as (informer, told):
            assert len(told) == 10
            source.faults.append(_broken())
            await client.delete(NODES, "n0")
            await until(lambda: len(told) == 11)
            assert len(informer.store) == 9
        assert source.requests == [STREAM, *["page"] * 3, "watch", *["page"] * 3, "watch"]
        assert informer.stats.failures["Invalid"] == 1
    finally:
        await client.aclose()
        plane.stop()
