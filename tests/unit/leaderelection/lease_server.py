"""A lease API in memory, over a network that can be slow, lose answers, hang, or be cut.

A request that was sent arrives even if its sender gave up: cancelling a caller recalls nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar, final

import msgspec
from msgspec.structs import replace

from mcm.api.core import LEASES, Lease
from mcm.api.meta import KubeObject
from mcm.client.errors import (
    AlreadyExists,
    Conflict,
    ConnectionRefused,
    KubeError,
    NotFound,
    TransportError,
)
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectClient
from mcm.clock import LoopClock

T = TypeVar("T", bound=KubeObject)
R = TypeVar("R")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@final
class SkewedClock:
    """Runs ``rate`` times as fast as the loop, shows a wall time off by ``wall_offset``, and can
    jump ahead, as it seems to one whose event loop was blocked."""

    def __init__(self, rate: float = 1.0, *, offset: float = 0.0, wall_offset: float = 0.0) -> None:
        self._real = LoopClock(EPOCH)
        self._rate = rate
        self._wall_offset = timedelta(seconds=wall_offset)
        self.offset = offset

    def now(self) -> datetime:
        return self._real.now() + self._wall_offset

    def monotonic(self) -> float:
        return self._real.monotonic() * self._rate + self.offset

    async def sleep(self, seconds: float) -> None:
        await self._real.sleep(seconds / self._rate)


@final
@dataclass
class Network:
    """What happens between a client and the server. Times in seconds of real (loop) time."""

    latency: Callable[[], float] = lambda: 0.0
    loss: Callable[[], bool] = lambda: False
    refused: bool = False
    hung: bool = False
    failure: Exception | None = None


@final
@dataclass
class LeaseServer:
    """Keeps leases with optimistic locking; ``writes`` has every state a lease was in."""

    leases: dict[str, Lease] = field(default_factory=dict)
    version: int = 0
    writes: list[tuple[float, Lease]] = field(default_factory=list)
    absent_on_update: KubeError | None = None
    on_write: Callable[[Lease | None, Lease], None] = lambda before, after: None

    def get(self, name: str) -> Lease:
        if name not in self.leases:
            raise NotFound(404, "NotFound", f'leases "{name}" not found')
        return self.leases[name]

    def create(self, lease: Lease) -> Lease:
        if lease.metadata.name in self.leases:
            raise AlreadyExists(409, "AlreadyExists")
        return self._store(None, lease)

    def update(self, name: str, lease: Lease) -> Lease:
        if name not in self.leases and self.absent_on_update is not None:
            raise self.absent_on_update
        before = self.get(name)
        if lease.metadata.resource_version != before.metadata.resource_version:
            raise Conflict(409, "Conflict")
        return self._store(before, lease)

    def _store(self, before: Lease | None, lease: Lease) -> Lease:
        self.version += 1
        meta = replace(lease.metadata, resource_version=str(self.version))
        # Through the wire, as the real thing.
        after = msgspec.json.decode(msgspec.json.encode(replace(lease, metadata=meta)), type=Lease)
        self.leases[meta.name] = after
        self.writes.append((asyncio.get_running_loop().time(), after))
        self.on_write(before, after)
        return after


@final
class LeaseLink(ObjectClient):
    """One elector's client: its own network to the shared server. ``requests`` lists the verbs."""

    def __init__(self, server: LeaseServer, network: Network | None = None) -> None:
        self.server = server
        self.network = network or Network()
        self.requests: list[str] = []

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        assert call.resource == LEASES and call.namespace == "ns"
        lease = await self._call(call.verb.lower(), lambda: self._act(call))
        return read(Response(200, {}, msgspec.json.encode(lease)))

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("an elector watches nothing")

    def _act(self, call: Call) -> Lease:
        match call.verb:
            case "GET":
                return self.server.get(call.name)
            case "CREATE":
                return self.server.create(msgspec.json.decode(call.body, type=Lease))
            case "UPDATE":
                return self.server.update(call.name, msgspec.json.decode(call.body, type=Lease))
            case other:
                raise AssertionError(f"an elector has no use for {other}")

    async def _call(self, verb: str, act: Callable[[], Lease]) -> Lease:
        network = self.network
        self.requests.append(verb)
        if network.failure is not None:
            raise network.failure
        if network.refused:
            raise ConnectionRefused("connection refused")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Lease] = loop.create_future()
        if network.hung:
            return await answer
        if network.loss():
            await LoopClock(EPOCH).sleep(network.latency())
            raise TransportError("reset before it arrived")
        loop.call_later(network.latency(), self._arrive, act, answer)
        await asyncio.wait([answer])
        await LoopClock(EPOCH).sleep(network.latency())
        if network.loss():
            raise TransportError("reset before it was answered")
        return answer.result()

    @staticmethod
    def _arrive(act: Callable[[], Lease], answer: asyncio.Future[Lease]) -> None:
        try:
            answer.set_result(act())
        except KubeError as error:
            answer.set_exception(error)
            answer.exception()  # seen, even if the client has left
