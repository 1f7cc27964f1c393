"""A token that is replaced under load, with no time in which both the old and the new are good."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Self, final

import pytest

from mcm.api.crds import crd_manifests
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import ObjectMeta
from mcm.client.client import Client
from mcm.client.connection import ConnectionSpec
from mcm.client.credentials import Fetched, RenewingCredentials, TokenFileSource
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from mcm.informers import Informer, InformerFactory, ReflectorOptions
from mcm.sandbox.apiserver.front.http import serve_https
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import create_all
from tests.faults.harm import UNHARMED, Exchange, Fate, Harm
from tests.faults.proxy import FaultyProxy
from tests.faults.scenario import Security
from tests.faults.wire import Upstream

ROTATIONS = 20
CALLERS = 8
NAMESPACE = "default"
CLOCK = SystemClock()


@final
class SkippingClock:
    """Real time, but for the hours that are skipped."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def now(self) -> datetime:
        return CLOCK.now()

    def monotonic(self) -> float:
        return CLOCK.monotonic() + self.skipped

    async def sleep(self, seconds: float) -> None:
        await CLOCK.sleep(seconds)


@final
class CountingSource:
    """The token file; counts reads, and how many there were at a time."""

    def __init__(self, path: Path) -> None:
        self._file = TokenFileSource(str(path))
        self._running = 0
        self.reads = 0
        self.at_a_time = 0

    async def fetch(self) -> Fetched:
        self._running += 1
        self.at_a_time = max(self.at_a_time, self._running)
        try:
            return await self._file.fetch()
        finally:
            self._running -= 1
            self.reads += 1


@final
class Guarded:
    """A server that admits one token, which :meth:`rotate` replaces: in the file and at the door in
    one moment."""

    def __init__(self, server: ApiServer, path: Path, proxy_to: Upstream, *, token: str) -> None:
        self.server = server
        self.proxy = FaultyProxy(
            proxy_to,
            fate_of=self._admit,
            random=random.Random(1),
            authorization=f"Bearer {token}",
        )
        self.clock = SkippingClock()
        self.source = CountingSource(path)
        self.refused = 0
        self.sent_with: set[str] = set()
        self._path = path
        self._token = ""
        self._number = 0
        self.rotate()
        credentials = RenewingCredentials(self.source, clock=self.clock)
        transport = HTTPTransport(
            ConnectionSpec(self.proxy.url), clock=CLOCK, credentials=credentials
        )
        self.client = Client(transport, clock=CLOCK)

    @classmethod
    @asynccontextmanager
    async def open(cls, folder: Path, security: Security) -> AsyncIterator[Self]:
        server = ApiServer(clock=CLOCK, random=random.Random(1))
        await create_all(server, crd_manifests())
        async with AsyncExitStack() as stack:
            front = await stack.enter_async_context(
                serve_https(server, certificates=security.certificates)
            )
            upstream = Upstream(int(front.url.rpartition(":")[2]), security.trusting)
            guarded = cls(server, folder / "token", upstream, token=front.token)
            await stack.enter_async_context(guarded.proxy.running())
            stack.push_async_callback(guarded.client.aclose)
            yield guarded

    def rotate(self) -> None:
        self._number += 1
        self._token = f"token-{self._number}"
        fresh = self._path.with_suffix(".new")
        fresh.write_text(self._token)
        os.replace(fresh, self._path)

    async def grow_old(self) -> None:
        """Let an hour go by: the token is read once more as it is."""
        reads = self.source.reads
        self.clock.skipped += 3600.0
        while self.source.reads == reads:
            await CLOCK.sleep(0.002)

    def _admit(self, exchange: Exchange) -> Fate:
        if exchange.headers.get("authorization") == f"Bearer {self._token}":
            self.sent_with.add(self._token)
            return UNHARMED
        self.refused += 1
        return Fate(Harm.ANSWERED, code=401)


@final
class Caller:
    """Works all the time, and knows at the end what must be there. Any error ends the test."""

    def __init__(self, name: str, client: Client) -> None:
        self._client = client
        self._name = name
        self.done = 0

    async def run(self) -> None:
        meta = ObjectMeta(name=self._name, namespace=NAMESPACE)
        await self._client.create(MACHINES, Machine(metadata=meta), namespace=NAMESPACE)
        while True:
            number = self.done + 1
            patch = {"metadata": {"annotations": {"number": str(number)}}}
            await self._client.patch(MACHINES, self._name, patch, namespace=NAMESPACE)
            self.done = number
            read = await self._client.get(MACHINES, self._name, namespace=NAMESPACE)
            assert read.metadata.annotations["number"] == str(number)


@pytest.fixture
async def guarded(tmp_path: Path, security: Security) -> AsyncIterator[Guarded]:
    async with Guarded.open(tmp_path, security) as opened:
        yield opened


async def test_a_token_can_be_replaced_under_load_and_nobody_notices(guarded: Guarded) -> None:
    factory = InformerFactory(
        guarded.client,
        clock=CLOCK,
        namespace=NAMESPACE,
        options=ReflectorOptions(backoff_base=0.005, backoff_cap=0.05, brief=0.001),
    )
    informer = factory.informer(MACHINES)
    callers = [Caller(f"m{n}", guarded.client) for n in range(CALLERS)]
    mirroring = asyncio.create_task(factory.run())
    working = [asyncio.create_task(caller.run()) for caller in callers]
    await factory.wait_synced()
    cuts = 0
    for _ in range(ROTATIONS):
        await guarded.grow_old()
        reads, refused = guarded.source.reads, guarded.refused
        guarded.rotate()
        cuts += guarded.proxy.cut_watches()
        await one_more_each(callers, working)
        await caught_up(informer, guarded.server)
        assert guarded.source.reads == reads + 1, "all who were refused share one reading"
        assert guarded.refused > refused
    for task in (*working, mirroring):
        task.cancel()
    await asyncio.wait({*working, mirroring})
    assert guarded.source.at_a_time == 1
    assert len(guarded.sent_with) == ROTATIONS + 1
    assert cuts >= ROTATIONS - 1, "the first may come before the first watch"
    assert (informer.stats.watches, informer.stats.lists) == (cuts + 1, 1)
    assert set(informer.stats.failures) <= {"TransportError"}, "the cuts, and nothing else"
    assert all(caller.done > ROTATIONS for caller in callers)


async def one_more_each(callers: list[Caller], working: list[asyncio.Task[None]]) -> None:
    """Wait until everybody has got something done that was begun from now on."""
    wanted = {caller: caller.done + 2 for caller in callers}
    while any(caller.done < number for caller, number in wanted.items()):
        for task in working:
            if task.done():
                task.result()  # the error that should not have come
        await CLOCK.sleep(0.002)


async def caught_up(informer: Informer[Machine], server: ApiServer) -> None:
    """Wait until the mirror has come to what the server has now."""
    now = server.store.revision
    async with asyncio.timeout(10):
        while int(informer.store.resource_version) < now:
            await CLOCK.sleep(0.002)
