"""The sandbox's front door: HTTPS on a loopback address, bearer tokens.

:func:`serve_https` listens while its context lasts, and knows nothing of Kubernetes except how to
refuse, always with a Status: a missing token is 401, a body too slow 408 or too large 413, a line
too long 414, one watch too many 429. Requests go to :meth:`ApiServer.handle` as they are; streams
are written chunk by chunk, and closed when the client goes away or the context ends, whichever is
first.
"""

from __future__ import annotations

import asyncio
import errno
import gzip
import ipaddress
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol, final, runtime_checkable

import orjson
from aiohttp import web
from aiohttp.http import HttpVersion11

from mcm.client.errors import ConfigurationError
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import SystemClock
from mcm.http_server import Limits, listening, read_body
from mcm.sandbox.apiserver import protobuf
from mcm.sandbox.apiserver.authentication.users import ADMIN, ANONYMOUS, User
from mcm.sandbox.apiserver.errors import (
    StatusError,
    internal,
    slow_body,
    too_large_body,
    unreadable,
)
from mcm.sandbox.apiserver.front.certificates import Certificates
from mcm.sandbox.apiserver.front.watch_places import WatchPlaces
from mcm.sandbox.apiserver.limits import LARGEST_BODY
from mcm.sandbox.apiserver.server import ApiServer

__all__ = ["Certificates", "Front", "serve_https"]

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
COMPRESS_FROM = 128 * 1024
"""Bytes; smaller answers cost less to send than to compress (upstream's threshold)."""

_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
SHUTDOWN_SECONDS = 2.0
LIMITS = Limits(
    connections=512,
    # Upstream's, which lets clients keep a connection a little longer than they do.
    idle=90.0,
    # A selector that names many things is long.
    line=64 * 1024,
    header=64 * 1024 + 1,
    largest_body=LARGEST_BODY,
    shutdown=SHUTDOWN_SECONDS,
)


@final
@dataclass(frozen=True, slots=True)
class Front:
    """A server that listens: what a client needs to reach it."""

    url: str
    ca: bytes
    token: str = field(repr=False)


@asynccontextmanager
async def serve_https(
    server: ApiServer, *, certificates: Certificates, port: int = 0, host: str = LOOPBACK
) -> AsyncIterator[Front]:
    """Serve while the context lasts. ``port`` 0 takes a free one.

    On leaving, watches end first, so that nobody has to be waited for.

    Raises:
        ConfigurationError: ``host`` is no loopback address, or the port cannot be had.
    """
    _require_loopback(host)
    server.authenticator.learn(certificates.token, ADMIN)
    door = _Door(server)
    service = listening(
        door.answer,
        host=host,
        port=port,
        clock=SystemClock(),
        limits=LIMITS,
        tls=certificates.server_context(),
        refusal=_refusal,
    )
    async with AsyncExitStack() as stack:
        try:
            bound = await stack.enter_async_context(service)
        except OSError as error:
            raise _cannot_listen(host, port, error) from error
        shown = f"[{host}]" if ":" in host else host
        try:
            yield Front(f"https://{shown}:{bound}", certificates.ca, certificates.token)
        finally:
            door.closing = True
            server.end_watches()


def _require_loopback(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConfigurationError(
            f"the sandbox listens on loopback addresses only, not on {host!r}: it is no secured "
            "cluster; use 127.0.0.1 or ::1"
        )


def _cannot_listen(host: str, port: int, error: OSError) -> ConfigurationError:
    why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
    return ConfigurationError(
        f"cannot listen on {host}:{port}: {why}; choose another port with --port"
    )


def _refusal(status: int, why: str) -> web.Response:
    """Refuse what is no request with a Status, which is what clients of the API can read."""
    error = internal(why) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else unreadable(status, why)
    answer = error.response()
    return web.Response(status=answer.status, headers=dict(answer.headers), body=answer.body)


@runtime_checkable
class _Closable(Protocol):
    async def aclose(self) -> None: ...


@final
class _Door:
    """One handler for all connections."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._watches = WatchPlaces(LIMITS.places())
        self.closing = False

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await self._answer(request)
        if self.closing:
            # Whoever asks while we end gets this answer and no other.
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            user = self._sender(request)
            call = await _translated(request)
        except StatusError as error:
            return await _whole(request, error.response())
        answer = await self._server.handle(call, user)
        if isinstance(answer, Response):
            return await _whole(request, answer)
        if request.method == "HEAD" or self.closing:
            await _close(answer.chunks)
            return await _whole(request, Response(answer.status, answer.headers, b""))
        with ExitStack() as place:
            try:
                place.enter_context(self._watches.taken(request.headers.get("User-Agent", "")))
            except StatusError as error:
                await _close(answer.chunks)
                return await _whole(request, error.response())
            return await _streamed(request, answer)

    def _sender(self, request: web.BaseRequest) -> User:
        """Return who asks; what says how the server is, anybody may. Raises StatusError."""
        try:
            return self._server.identify(request.headers.items())
        except StatusError as error:
            path = request.rel_url.raw_path
            is_open = any(path == p or path.startswith(f"{p}/") for p in _OPEN_PATHS)
            if is_open and error.code == HTTPStatus.UNAUTHORIZED:
                return ANONYMOUS
            raise


async def _translated(request: web.BaseRequest) -> Request:
    """Take a request apart. Raises StatusError (408, 413, 415)."""
    try:
        body = await read_body(request, LIMITS)
    except TimeoutError:
        raise slow_body(LIMITS.body) from None
    except web.HTTPRequestEntityTooLarge:
        raise too_large_body(LARGEST_BODY) from None
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers.pop("authorization", None)
    if body and headers.get("content-type", "").startswith(protobuf.CONTENT_TYPE):
        body = _as_json(body)
        headers["content-type"] = "application/json"
    return Request(
        "GET" if request.method == "HEAD" else request.method,
        request.rel_url.raw_path,
        query=tuple(request.rel_url.query.items()),
        headers=headers,
        body=body,
    )


def _as_json(body: bytes) -> bytes:
    try:
        return orjson.dumps(protobuf.to_json(body))
    except (protobuf.Unsupported, UnicodeDecodeError) as error:
        raise StatusError(
            415, "UnsupportedMediaType", f"cannot read the body as protobuf ({error}); send JSON"
        ) from None


async def _whole(request: web.BaseRequest, answer: Response) -> web.Response:
    headers = dict(answer.headers)
    body = answer.body
    if len(body) >= COMPRESS_FROM and _takes_gzip(request.headers):
        # Some tens of milliseconds for a big list: too long for the loop.
        body = await asyncio.to_thread(gzip.compress, body, 1, mtime=0)
        headers["content-encoding"] = "gzip"
        headers["vary"] = "Accept-Encoding"
    return web.Response(status=answer.status, headers=headers, body=body)


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    offers = headers.get("Accept-Encoding", "").split(",")
    return any(offer.partition(";")[0].strip() == "gzip" for offer in offers)


async def _streamed(request: web.BaseRequest, answer: StreamResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=dict(answer.headers))
    if request.version >= HttpVersion11:
        response.enable_chunked_encoding()  # an older client reads to the end of the connection
    try:
        await response.prepare(request)
        async for chunk in answer.chunks:
            await response.write(chunk)
        await response.write_eof()
    except ConnectionError:
        logger.debug("a client left its stream", extra={"path": request.path})
    finally:
        await _close(answer.chunks)
    return response


async def _close(chunks: AsyncIterator[bytes]) -> None:
    if isinstance(chunks, _Closable):
        await chunks.aclose()
