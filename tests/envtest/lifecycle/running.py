"""The manager and the simulated cloud, each at work under a user of its own."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from typing import final

from prometheus_client import CollectorRegistry

from mcm.client.client import Client
from mcm.client.http import HTTPTransport
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import SystemClock
from mcm.manager import Manager
from mcm.options import Clusters, LeaderElection, Options
from mcm.providers.simulated import provider
from mcm.providers.simulated.cloud import SimulatedCloud
from tests.envtest.control_plane import CLOUD_AND_KUBELETS, MANAGER, ControlPlane

PATIENT = LeaderElection(
    lease_duration=timedelta(seconds=60),
    renew_deadline=timedelta(seconds=50),
    retry_period=timedelta(seconds=2),
)
"""Nobody loses a lease because the machine is busy, or the API server away for some seconds."""


@final
class RecordingTransport:
    """Passes everything on and keeps count of the answers, by status and request line."""

    def __init__(self, inner: HTTPTransport) -> None:
        self._inner = inner
        self.answers: Counter[tuple[int, str]] = Counter()

    @property
    def forbidden(self) -> list[str]:
        return [line for status, line in self.answers if status == 403]

    async def request(self, request: Request) -> Response:
        response = await self._inner.request(request)
        self._note(response.status, request)
        return response

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        return self._stream(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        async with self._inner.stream(request) as response:
            self._note(response.status, request)
            yield response

    def _note(self, status: int, request: Request) -> None:
        self.answers[status, f"{request.method} {request.path}"] += 1


@final
class RunningManager:
    """A manager in this process. Use as a context manager: leaving it stops it in order."""

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        *,
        identity: str = "manager-1",
        election: LeaderElection = PATIENT,
    ) -> None:
        self.transport = RecordingTransport(HTTPTransport(plane.spec(MANAGER), clock=SystemClock()))
        self.manager = Manager(
            Options(clusters=Clusters(namespace=namespace), leader_election=election),
            control=self.transport,
            target=self.transport,
            provider=provider,
            clock=SystemClock(),
            randomness=random.Random(f"{namespace}/{identity}"),
            registry=CollectorRegistry(),
            identity=identity,
        )
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> RunningManager:
        self._running = asyncio.create_task(self.manager.run(self._stop))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        try:
            await self.stop()
        finally:
            await self.transport.aclose()

    @property
    def ended(self) -> bool:
        return self._running is None or self._running.done()

    async def stop(self) -> None:
        """End it as SIGTERM does; raises what it died of. Idempotent."""
        running, self._running = self._running, None
        if running is not None:
            self._stop.set()
            await running

    async def crash(self) -> None:
        """End it without a word to the server: what it would say reaches nobody."""
        running, self._running = self._running, None
        await self.transport.aclose()
        if running is not None:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


@asynccontextmanager
async def simulated_cloud(plane: ControlPlane, namespace: str) -> AsyncIterator[RecordingTransport]:
    """Boot the VMs of ``namespace`` and run a kubelet in each, while the context lasts; yield what
    the cloud speaks to the server through."""
    clock = SystemClock()
    transport = RecordingTransport(HTTPTransport(plane.spec(CLOUD_AND_KUBELETS), clock=clock))
    client = Client(transport, clock=clock, user_agent="simulated-cloud")
    cloud = SimulatedCloud(
        client,
        client,
        namespace=namespace,
        clock=clock,
        randomness=random.Random(1),
        heartbeat_interval=5.0,
    )
    running = asyncio.create_task(cloud.run())
    try:
        yield transport
        assert not running.done(), "the cloud ended by itself"
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await transport.aclose()
