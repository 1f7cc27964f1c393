"""Sends requests over TCP, by aiohttp.

Three lanes of connections, so that watches never starve writes, nor writes the lease. TLS context
and credentials are asked for at each request. When the context changes, new requests get new
connections; a request on its way ends on the old one, a watch is cut: a server asks who we are when
it opens, and no more.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
)
from functools import lru_cache
from typing import final
from urllib.parse import urlencode

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from mcm.client import connection
from mcm.client.connection import ConnectionSpec, check_urls
from mcm.client.credentials import (
    Credential,
    CredentialsProvider,
    Headers,
    RenewingCredentials,
    StaticCredentials,
    TokenFileSource,
    basic,
    bearer,
    impersonation_headers,
)
from mcm.client.errors import RequestTimeout, TLSError, TransportError
from mcm.client.execplugin import ExecSource
from mcm.client.failures import CARRIER_ERRORS, Route, translate
from mcm.client.sockets import open_socket
from mcm.client.tls import TLSSource, VersionedContext
from mcm.client.transport import Lane, Request, Response, StreamResponse
from mcm.clock import Clock

logger = logging.getLogger(__name__)

_CONNECT_TIMEOUT = 10.0
_IDLE_KEPT = 15.0  # well below any server's own limit, so that we are the ones who close
_READ_BUFFER = 256 * 1024
_CONNECTIONS: Mapping[Lane, int] = {Lane.WATCH: 0, Lane.REQUEST: 64, Lane.LEASE: 2}  # 0: no limit
_IMPLICIT = ("Accept-Encoding", "User-Agent", "Content-Type")


def credentials_provider(
    spec: connection.Credentials, *, clock: Clock, environ: Mapping[str, str]
) -> CredentialsProvider:
    """Return the provider for what a connection spec describes."""
    match spec:
        case connection.StaticToken():
            return StaticCredentials(
                bearer(spec.token, origin="the token"),
                clock=clock,
                expires_at=spec.expires_at,
                remedy=spec.remedy,
            )
        case connection.BasicAuth():
            return StaticCredentials(basic(spec.username, spec.password))
        case connection.TokenFile():
            return RenewingCredentials(TokenFileSource(spec.path), clock=clock)
        case connection.ExecPlugin():
            return RenewingCredentials(ExecSource(spec, clock=clock, environ=environ), clock=clock)
        case connection.NoCredentials():
            return StaticCredentials()


@final
class HTTPTransport:
    """A :class:`mcm.client.transport.Transport` to one server as one identity.

    Nothing is opened before the first request. ``credentials`` replaces what the spec says.
    Raises :class:`ConfigurationError` at once for a server or proxy URL that cannot work.
    """

    def __init__(
        self,
        spec: ConnectionSpec,
        *,
        clock: Clock,
        credentials: CredentialsProvider | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        check_urls(spec)
        environ = os.environ if environ is None else environ
        self._spec = spec
        self._base = URL(spec.server, encoded=True)
        self._route = Route.to(spec.server, spec.proxy)
        self._impersonation = impersonation_headers(spec.impersonation)
        self._credentials = credentials or credentials_provider(
            spec.credentials, clock=clock, environ=environ
        )
        self._tls = TLSSource(spec.tls, clock=clock) if self._base.scheme == "https" else None
        self._channels: list[_Channel] = []  # the last one is for new requests
        self._closed = False
        if self._tls is None and not isinstance(spec.credentials, connection.NoCredentials):
            logger.warning(
                "%s goes to %s unencrypted, where others may read it on the way; use https",
                spec.login,
                self._route.server,
            )

    async def request(self, request: Request) -> Response:
        limit = asyncio.timeout(request.timeout)
        try:
            async with limit:
                credential = await self._credentials.current()
                response = await self._whole(request, credential)
                if response.status == 401:
                    renewed = await self._credentials.renewed(credential)
                    if renewed is not None:
                        response = await self._whole(request, renewed)
                return response
        except TimeoutError:
            if not limit.expired():
                raise
        raise self._too_late(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        return self._stream(request)

    @property
    def generations_open(self) -> int:
        """How many generations of connections live: 1, but for a while after a new TLS context."""
        return len(self._channels)

    async def aclose(self) -> None:
        self._closed = True
        channels, self._channels = self._channels, []
        for channel in channels:
            await channel.close()

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        async with AsyncExitStack() as stack:
            raw = await self._opened(request, stack)
            chunks = await stack.enter_async_context(aclosing(self._chunks(raw)))
            yield StreamResponse(raw.status, _lowered(raw), chunks, self._refusal(raw.status))

    async def _opened(self, request: Request, stack: AsyncExitStack) -> aiohttp.ClientResponse:
        """Wait for the headers of a stream, no longer than the request allows."""
        limit = asyncio.timeout(request.timeout)
        try:
            async with limit:
                return await stack.enter_async_context(self._answered(request))
        except TimeoutError:
            if not limit.expired():
                raise
        raise self._too_late(request)

    @asynccontextmanager
    async def _answered(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send, once more with other credentials after a 401, and yield the open answer."""
        credential = await self._credentials.current()
        async with AsyncExitStack() as stack:
            raw = await stack.enter_async_context(_Exchange(self, request, credential))
            if raw.status == 401:
                renewed = await self._credentials.renewed(credential)
                if renewed is not None:
                    await stack.aclose()
                    raw = await stack.enter_async_context(_Exchange(self, request, renewed))
            yield raw

    async def _whole(self, request: Request, credential: Credential) -> Response:
        """Send once, and read the answer to its end."""
        async with _Exchange(self, request, credential) as raw:
            body = await self._body(raw)
            return Response(raw.status, _lowered(raw), body, self._refusal(raw.status))

    async def send(
        self, session: aiohttp.ClientSession, request: Request, credential: Credential
    ) -> aiohttp.ClientResponse:
        guard = _Guard(request.permit)
        try:
            return await session.request(
                request.method,
                self._url(request),
                data=_GuardedBody(request.body, guard) if request.body else None,
                headers=self._headers(request, credential.headers),
                allow_redirects=False,
                proxy=self._spec.proxy or None,
                server_hostname=self._spec.tls_server_name or None,
                timeout=_timeout(request.read_timeout),
            )
        except CARRIER_ERRORS as error:
            failure = translate(error, self._route)
        if guard.refusal is not None:
            raise guard.refusal
        if isinstance(failure, TLSError) and self._tls is not None:
            self._tls.suspect()
        # Raised out here: as the context of our error, the original would bring its headers along.
        raise failure

    def _url(self, request: Request) -> URL:
        """Put together what is known in parts: to take a text apart costs six times as much."""
        return URL.build(
            scheme=self._base.scheme,
            authority=self._base.raw_authority,
            path=self._base.raw_path.rstrip("/") + request.path,
            query_string=_query(request.query),
            encoded=True,
        )

    def _headers(self, request: Request, credential: Headers) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept": "application/json"})
        headers.update(request.headers)
        if not self._spec.compression:
            headers.pop("Accept-Encoding", None)
        for name, value in (*credential, *self._impersonation):
            headers.add(name, value)
        return headers

    async def _body(self, raw: aiohttp.ClientResponse) -> bytes:
        try:
            return await raw.read()
        except CARRIER_ERRORS as error:
            failure = translate(error, self._route)
        raise failure

    async def _chunks(self, raw: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in raw.content.iter_any():
                yield chunk
            return
        except CARRIER_ERRORS as error:
            failure = translate(error, self._route)
        raise failure

    def _refusal(self, status: int) -> str:
        return self._spec.refusal(self._route.server) if status == 401 else ""

    def _too_late(self, request: Request) -> RequestTimeout:
        return RequestTimeout(
            f"no answer from {self._route.server} within {request.timeout:g} s"
            f" to {request.method} {request.path}"
        )

    async def join(self, credential: Credential) -> _Channel:
        """Use the connections for the current TLS context until :meth:`leave`; retire those of an
        older one."""
        tls = await self._tls.current(credential) if self._tls is not None else None
        if self._closed:
            raise TransportError("the connection was closed by us")
        if not self._channels or self._channels[-1].outdated_by(tls):
            for outdated in self._channels:
                outdated.cut_watches()
            self._channels.append(_Channel(tls))
        channel = self._channels[-1]
        channel.users += 1
        return channel

    async def leave(self, channel: _Channel) -> None:
        """Close connections that were replaced, and that nobody uses any more."""
        channel.users -= 1
        if len(self._channels) < 2:
            return
        idle = [c for c in self._channels[:-1] if not c.users]
        self._channels = [c for c in self._channels if c not in idle]
        for each in idle:
            await each.close()


@final
class _Exchange:
    """One request, and its answer as long as the context lasts. As a class, since each request
    passes here: a generator for each of the steps would cost as much as aiohttp's own half."""

    __slots__ = ("_channel", "_credential", "_raw", "_request", "_transport")

    def __init__(self, transport: HTTPTransport, request: Request, credential: Credential) -> None:
        self._transport = transport
        self._request = request
        self._credential = credential

    async def __aenter__(self) -> aiohttp.ClientResponse:
        transport, request, credential = self._transport, self._request, self._credential
        self._channel = channel = await transport.join(credential)
        try:
            self._raw = await transport.send(channel.session(request.lane), request, credential)
        except BaseException:
            await transport.leave(channel)
            raise
        if request.lane is Lane.WATCH:
            channel.hold(self._raw)
        return self._raw

    async def __aexit__(self, *_: object) -> None:
        self._channel.release(self._raw)
        _hang_up(self._raw)
        await self._transport.leave(self._channel)


@final
class _Channel:
    """The sessions of all lanes over one TLS context."""

    def __init__(self, tls: VersionedContext | None) -> None:
        self._tls = tls
        self._sessions: dict[Lane, aiohttp.ClientSession] = {}
        self._watches: set[aiohttp.ClientResponse] = set()
        self._outdated = False
        self.users = 0

    def outdated_by(self, tls: VersionedContext | None) -> bool:
        return tls is not None and (self._tls is None or tls.version > self._tls.version)

    def session(self, lane: Lane) -> aiohttp.ClientSession:
        if lane not in self._sessions:
            self._sessions[lane] = self._opened(lane)
        return self._sessions[lane]

    def hold(self, raw: aiohttp.ClientResponse) -> None:
        """Know of an open answer that never ends, until :meth:`release`."""
        self._watches.add(raw)
        if self._outdated:
            _cut(raw)  # it was on its way when the context changed

    def release(self, raw: aiohttp.ClientResponse) -> None:
        self._watches.discard(raw)

    def cut_watches(self) -> None:
        """End what would go on for long, now and later: others replace these connections."""
        self._outdated = True
        for raw in self._watches:
            _cut(raw)

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _opened(self, lane: Lane) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            ssl=self._tls.context if self._tls is not None else True,
            limit=_CONNECTIONS[lane],
            keepalive_timeout=_IDLE_KEPT,
            socket_factory=open_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_IMPLICIT,
            trust_env=False,
            read_bufsize=_READ_BUFFER,
            middlewares=(_no_second_sending,),
        )


@final
class _Guard:
    """Asks a request's permit, and keeps the refusal, which aiohttp would wrap."""

    def __init__(self, permit: Callable[[], None] | None) -> None:
        self._permit = permit
        self.refusal: Exception | None = None

    def ask(self) -> None:
        if self._permit is None:
            return
        try:
            self._permit()
        except Exception as error:
            self.refusal = error
            raise


@final
class _GuardedBody(aiohttp.BytesPayload):
    """A body that asks in the moment in which it is written. aiohttp holds the headers back until
    then, so that nothing has left; and it has waited for the last time."""

    def __init__(self, body: bytes, guard: _Guard) -> None:
        super().__init__(body)
        self._guard = guard

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        self._guard.ask()
        await super().write_with_length(writer, content_length)


class _ConnectionLost(aiohttp.ClientConnectionError):
    """A lost connection, in a class that aiohttp does not take as a reason to send again."""


async def _no_second_sending(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating PUT and DELETE by itself: whether a request may be sent twice is
    decided in :mod:`mcm.client.retry`, and after the fence was asked."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _ConnectionLost from error


def _hang_up(raw: aiohttp.ClientResponse) -> None:
    """End an answer. A body read to its end has given its connection back already; one left in the
    middle is cut off at once: a TLS goodbye would keep the socket until the peer says its own."""
    _cut(raw)
    raw.close()


def _cut(raw: aiohttp.ClientResponse) -> None:
    if raw.connection is not None and raw.connection.transport is not None:
        raw.connection.transport.abort()


@lru_cache(maxsize=64)
def _query(pairs: tuple[tuple[str, str], ...]) -> str:
    return urlencode(pairs)  # nearly always one of a few


@lru_cache(maxsize=64)
def _timeout(read_timeout: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=read_timeout)


def _lowered(raw: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in raw.headers.items()}
