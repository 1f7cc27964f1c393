"""A transport that answers from a script, a client over it, and a clock set by hand."""

from __future__ import annotations

import json
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest
import trustme
from aiohttp import web

from mcm.client.client import Client
from mcm.client.connection import ConnectionSpec
from mcm.client.credentials import CredentialsProvider
from mcm.client.errors import TransportError
from mcm.client.http import HTTPTransport
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import LoopClock

Step = Response | StreamResponse | TransportError | float
"""What happens to a request: an answer, an error, or seconds to pass before the next step."""


class ScriptedTransport:
    """Plays its script, one answer or error a request, and remembers what was sent when."""

    def __init__(self, script: Sequence[Step], clock: LoopClock) -> None:
        self._script = list(script)
        self._clock = clock
        self.sent: list[Request] = []
        self.at: list[float] = []
        self.streams_open = 0
        self.closed = 0

    async def request(self, request: Request) -> Response:
        step = await self._next(request)
        assert isinstance(step, Response)
        return step

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        step = await self._next(request)
        assert isinstance(step, StreamResponse)
        self.streams_open += 1
        try:
            yield step
        finally:
            self.streams_open -= 1

    async def aclose(self) -> None:
        self.closed += 1

    async def _next(self, request: Request) -> Response | StreamResponse:
        self.sent.append(request)
        self.at.append(self._clock.monotonic())
        step = self._script.pop(0)
        while isinstance(step, float):
            await self._clock.sleep(step)
            step = self._script.pop(0)
        if isinstance(step, TransportError):
            raise step
        return step


class HandClock:
    """Stands still until a test moves it; sleeping moves it too."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Rig(Protocol):
    """What the ``rig`` fixture returns: a client over a script, with more arguments for it."""

    def __call__(self, *script: Step, **options: object) -> tuple[Client, ScriptedTransport]: ...


class Authority:
    """A certificate authority made on the spot; everything it hands out is PEM."""

    def __init__(self, name: str = "test authority") -> None:
        self._ca = trustme.CA(organization_name=name)
        self.pem = self._ca.cert_pem.bytes()

    def issue(
        self, *names: str, common_name: str = "somebody", expired: bool = False
    ) -> tuple[bytes, bytes]:
        """Return certificate and key for DNS names or addresses (a server), or none (a client)."""
        until = datetime(2001, 1, 1, tzinfo=UTC) if expired else None
        issued = self._ca.issue_cert(*names, common_name=common_name, not_after=until)
        return issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()


class Serve(Protocol):
    """Starts a server on loopback for a handler; returns its URL."""

    async def __call__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        tls: ssl.SSLContext | None = None,
    ) -> str: ...


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    runners: list[web.ServerRunner] = []

    async def start(
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        tls: ssl.SSLContext | None = None,
    ) -> str:
        runner = web.ServerRunner(
            web.Server(handler, handler_cancellation=True), shutdown_timeout=0.05
        )
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        _, port = runner.addresses[0][:2]
        return f"{'https' if tls else 'http'}://127.0.0.1:{port}"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def connect(hands: HandClock) -> AsyncIterator[Callable[..., HTTPTransport]]:
    """Make transports that are closed after the test."""
    made: list[HTTPTransport] = []

    def make(
        server: str, *, provider: CredentialsProvider | None = None, **spec: object
    ) -> HTTPTransport:
        made.append(
            HTTPTransport(
                ConnectionSpec(server=server, **spec),  # type: ignore[arg-type]
                clock=hands,
                credentials=provider,
            )
        )
        return made[-1]

    yield make
    for transport in made:
        await transport.aclose()


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def other_authority() -> Authority:
    return Authority("another authority")


@pytest.fixture
def clock() -> LoopClock:
    return LoopClock(datetime(2024, 1, 1, tzinfo=UTC))


@pytest.fixture
def hands() -> HandClock:
    return HandClock()


@pytest.fixture
def rig(clock: LoopClock) -> Rig:
    def make(*script: Step, **options: object) -> tuple[Client, ScriptedTransport]:
        transport = ScriptedTransport(script, clock)
        options.setdefault("random", random.Random(1))
        return Client(transport, clock=clock, **options), transport  # type: ignore[arg-type]

    return make


@pytest.fixture
def ok() -> Callable[..., Response]:
    def make(body: object, code: int = 200, **headers: str) -> Response:
        lowered = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(code, lowered, json.dumps(body).encode())

    return make
