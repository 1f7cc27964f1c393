"""The sandbox's front door: HTTPS on a loopback address, one bearer token.

:func:`serve_https` listens while its context lasts, and knows nothing of Kubernetes except how to
refuse: a missing token is 401, a body too large 413, both with a Status. Requests go to
:meth:`ApiServer.handle` as they are; streams are written chunk by chunk, and closed when the client
goes away or the context ends, whichever is first.
"""

from __future__ import annotations

import asyncio
import errno
import gzip
import hmac
import ipaddress
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, final, runtime_checkable

import orjson
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage

from mcm.client.errors import ConfigurationError
from mcm.client.transport import Request, Response, StreamResponse
from mcm.sandbox.apiserver import protobuf
from mcm.sandbox.apiserver.errors import StatusError, too_large_body
from mcm.sandbox.apiserver.front.certificates import Certificates
from mcm.sandbox.apiserver.limits import LARGEST_BODY
from mcm.sandbox.apiserver.server import ApiServer

__all__ = ["Certificates", "Front", "serve_https"]

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
COMPRESS_FROM = 128 * 1024
"""Bytes; smaller answers cost less to send than to compress (upstream's threshold)."""

_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
SHUTDOWN_SECONDS = 2.0


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
    door = _Door(server, certificates.token)
    runner = web.ServerRunner(
        web.Server(
            door.answer, request_factory=_request, handler_cancellation=True, access_log=None
        ),
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=certificates.server_context())
    try:
        await _listen(site, host, port)
        bound = runner.addresses[0][1]
        shown = f"[{host}]" if ":" in host else host
        yield Front(f"https://{shown}:{bound}", certificates.ca, certificates.token)
    finally:
        door.closing = True
        server.end_watches()
        await runner.cleanup()


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


async def _listen(site: web.TCPSite, host: str, port: int) -> None:
    try:
        await site.start()
    except OSError as error:
        why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {why}; choose another port with --port"
        ) from error


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    return web.BaseRequest(
        message,
        payload,
        protocol,
        writer,
        task,
        asyncio.get_running_loop(),
        client_max_size=LARGEST_BODY,
    )


@runtime_checkable
class _Closable(Protocol):
    async def aclose(self) -> None: ...


@final
class _Door:
    """One handler for all connections."""

    def __init__(self, server: ApiServer, token: str) -> None:
        self._server = server
        self._expected = f"Bearer {token}".encode()
        self.closing = False

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await self._answer(request)
        if self.closing:
            # A connection whose handshake outlasted the shutdown: nobody else will close it, and
            # every watch on it would end at once.
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            if not self._admits(request):
                raise StatusError(401, "Unauthorized", "Unauthorized")
            call = await _translated(request)
        except StatusError as error:
            return await _whole(request, error.response())
        answer = await self._server.handle(call)
        if isinstance(answer, Response):
            return await _whole(request, answer)
        if request.method == "HEAD" or self.closing:
            await _close(answer.chunks)
            return await _whole(request, Response(answer.status, answer.headers, b""))
        return await _streamed(request, answer)

    def _admits(self, request: web.BaseRequest) -> bool:
        path = request.rel_url.raw_path
        if any(path == p or path.startswith(f"{p}/") for p in _OPEN_PATHS):
            return True
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, self._expected)


async def _translated(request: web.BaseRequest) -> Request:
    """Take a request apart. Raises StatusError (413, 415)."""
    try:
        body = await request.read() if request.body_exists else b""
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
