"""An HTTP server that no client can exhaust: deadlines, a bound on connections, few log lines.

aiohttp parses requests and writes responses; here is decided whom it listens to, and for how long.

- At most so many connections are open, fewer where the process may have few file descriptors: the
  rest wait in the kernel and cost us nothing. Whoever is idle longest makes room for them.
- A request's head must arrive within its time, and so must a body that is asked for; an answer
  that nobody reads is given up. An idle connection is closed after a while. A long answer, such as
  a watch, may take as long as it likes, as long as it is read.
- What a peer does wrong costs one line in the log, and a minute's worth of it one line more.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final, Protocol, final

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import LineTooLong

from mcm.clock import Clock
from mcm.rate_limited_log import RateLimitedLog

logger = logging.getLogger(__name__)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_BACKLOG: Final = 128
_ACCEPT_RETRY: Final = 1.0
_NOBODY_THERE: Final = (errno.ECONNABORTED, errno.EAGAIN, errno.EINTR)
_SHARE: Final = 4
_FEWEST: Final = 4
_TLS_SHUTDOWN: Final = 5.0
_TIMED_OUT: Final = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one server bears. Times are in seconds, sizes in bytes.

    ``connections`` is a maximum; of the file descriptors that the process may have, a server takes
    a quarter at most. ``head`` is for request line and headers, ``line`` and ``header`` for the
    longest of each; these two differ, as that tells which was overstepped. Who has been idle for
    less than ``rest`` need not make room for others: who renews a lease is about to ask again.
    """

    connections: int = 256
    head: float = 10.0
    body: float = 30.0
    idle: float = 75.0
    rest: float = 5.0
    unread: float = 30.0
    line: int = 8190
    header: int = 8192
    largest_body: int = 1024**2
    shutdown: float = 1.0

    def places(self) -> int:
        """Return how many connections may be open in this process."""
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if allowed == resource.RLIM_INFINITY:
            return self.connections
        return max(_FEWEST, min(self.connections, allowed // _SHARE))


class Refusal(Protocol):
    """Makes the answer to what is no request we can read: a status, and why in a few words."""

    def __call__(self, status: int, why: str) -> web.Response: ...


def plain_refusal(status: int, why: str) -> web.Response:
    """Refuse in plain text."""
    return web.Response(status=status, text=f"{why}\n")


@asynccontextmanager
async def listening(
    handler: Handler,
    *,
    host: str,
    port: int,
    clock: Clock,
    limits: Limits | None = None,
    tls: ssl.SSLContext | None = None,
    refusal: Refusal = plain_refusal,
) -> AsyncIterator[int]:
    """Serve while the context lasts; yields the port (``port`` 0 takes a free one).

    On leaving, requests under way have ``limits.shutdown`` seconds to end. Raises OSError if the
    address cannot be had.
    """
    sockets = await _bound(host, port)
    bound: int = sockets[0].getsockname()[1]
    server = _Server(handler, limits or Limits(), clock, refusal)
    accepting = asyncio.create_task(_accept_on(sockets, server, tls), name=f"http server {bound}")
    runner = web.ServerRunner(server, shutdown_timeout=server.limits.shutdown)
    await runner.setup()
    try:
        yield bound
    finally:
        accepting.cancel()
        await asyncio.wait({accepting})
        if not accepting.cancelled() and (error := accepting.exception()):
            logger.error("the server had stopped to accept connections", exc_info=error)
        for sock in sockets:
            sock.close()
        await runner.cleanup()


async def read_body(request: web.BaseRequest, limits: Limits) -> bytes:
    """Return the request's body. Raises TimeoutError if it does not come within its time,
    web.HTTPRequestEntityTooLarge, or web.RequestPayloadError if it is malformed."""
    if not request.body_exists:
        return b""
    async with asyncio.timeout(limits.body):
        return await request.read()


# ---- sockets -------------------------------------------------------------------------------------


async def _bound(host: str, port: int) -> Sequence[socket.socket]:
    """Listen on every address of ``host`` (empty: all); a free port is the same on each."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            sock = socket.socket(family, kind, protocol)
            sockets.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = port or (sockets[0].getsockname()[1] if len(sockets) > 1 else 0)
            sock.bind((address[0], chosen, *address[2:]))
            sock.listen(_BACKLOG)
            sock.setblocking(False)
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets


async def _accept_on(
    sockets: Sequence[socket.socket], server: _Server, tls: ssl.SSLContext | None
) -> None:
    async with asyncio.TaskGroup() as group:
        for sock in sockets:
            group.create_task(_accept(sock, server, tls, group))


async def _accept(
    sock: socket.socket, server: _Server, tls: ssl.SSLContext | None, group: asyncio.TaskGroup
) -> None:
    while True:
        await server.room()
        await _readable(sock)
        try:
            peer, _ = sock.accept()
        except OSError as error:
            if error.errno not in _NOBODY_THERE:
                server.log.tell("accepting", f"cannot accept connections: {error}")
                await server.clock.sleep(_ACCEPT_RETRY)
            continue
        # From here to the callback nothing can be cancelled; the callback is called even for a
        # task that was cancelled before it began.
        peer.setblocking(False)
        connection = server()
        task = group.create_task(_connect(peer, connection, server, tls))
        task.add_done_callback(partial(_close_unless_made, peer, connection, server))


async def _readable(sock: socket.socket) -> None:
    """Return when somebody may wait to be accepted."""
    loop = asyncio.get_running_loop()
    somebody = asyncio.Event()
    loop.add_reader(sock, somebody.set)
    try:
        await somebody.wait()
    finally:
        loop.remove_reader(sock)


def _close_unless_made(
    peer: socket.socket, connection: _Connection, server: _Server, _: asyncio.Task[None]
) -> None:
    if not connection.made:
        peer.close()
        server.closed(connection)


async def _connect(
    peer: socket.socket, connection: _Connection, server: _Server, tls: ssl.SSLContext | None
) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: connection,
            peer,
            ssl=tls,
            ssl_handshake_timeout=server.limits.head if tls else None,
            ssl_shutdown_timeout=_TLS_SHUTDOWN if tls else None,
        )
    except OSError as error:  # TLS errors and time-outs among them: the peer's own trouble
        logger.debug("no connection came about: %s", error)
    except Exception as error:  # one peer must not end the service for all
        server.log.tell("failures", "no connection came about", error=error)


# ---- connections ---------------------------------------------------------------------------------


@final
class _Server(web.Server):
    """Makes the connections, and knows which are open."""

    def __init__(self, handler: Handler, limits: Limits, clock: Clock, refusal: Refusal) -> None:
        super().__init__(self._handle, request_factory=self._request, handler_cancellation=True)
        self.limits = limits
        self.clock = clock
        self.refusal = refusal
        self.log = RateLimitedLog(logger, clock)
        self._handler = handler
        self._places = limits.places()
        self._open: dict[_Connection, None] = {}
        self._change = asyncio.Event()

    def __call__(self) -> _Connection:
        connection = _Connection(self, asyncio.get_running_loop())
        self._open[connection] = None
        return connection

    def closed(self, connection: _Connection) -> None:
        """Give the place of ``connection`` free."""
        self._open.pop(connection, None)
        self.changed()

    def changed(self) -> None:
        """Take note that a connection was closed, or became idle."""
        self._change.set()

    async def room(self) -> None:
        """Return when one more connection may be open. Whoever is idle longest has to go."""
        while len(self._open) >= self._places:
            self.log.tell("crowding", f"all {self._places} connections are taken")
            idle = [connection for connection in self._open if connection.idle]
            rested_since = asyncio.get_running_loop().time() - self.limits.rest
            rested = [connection for connection in idle if connection.idle_since <= rested_since]
            if rested:
                min(rested, key=lambda connection: connection.idle_since).force_close()
            self._change.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.rest if idle and not rested else None):
                    await self._change.wait()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, _Connection)
        connection.begin()
        return await self._handler(request)

    def _request(
        self,
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
            client_max_size=self.limits.largest_body,
        )


@final
class _Connection(web.RequestHandler):
    """aiohttp's state machine of one connection, with deadlines around it."""

    __slots__ = ("_deadline", "_owner", "_unread", "busy", "idle_since", "made")

    def __init__(self, server: _Server, loop: asyncio.AbstractEventLoop) -> None:
        limits = server.limits
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type] # allowed, and means none
            keepalive_timeout=limits.idle,
            lingering_time=limits.head,
            max_line_size=limits.line,
            max_field_size=limits.header,
        )
        self._owner = server
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.made = False
        self.busy = False
        self.idle_since = loop.time()

    @property
    def idle(self) -> bool:
        """Whether nothing of a request is here, and nothing of an answer is left."""
        open_ = self.transport is not None
        return open_ and not self.busy and self._deadline is None and self._unread is None

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.made = True
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._disarm()
        self._has_read()
        self._owner.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.busy and self._deadline is None:
            self._expect_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._loop.call_later(self._owner.limits.unread, self._give_up)

    def resume_writing(self) -> None:
        self._has_read()
        super().resume_writing()

    def _has_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    # What the server tells

    def begin(self) -> None:
        """A request's head is here, and is being answered."""
        self.busy = True
        self._disarm()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send what is left of the answer; after that the connection is idle."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self.busy = False
            self.idle_since = self._loop.time()
            self._owner.changed()

    # Deadlines

    def _expect_head(self) -> None:
        self._deadline = self._loop.call_later(self._owner.limits.head, self._too_slow)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self.transport is not None:
            self._owner.log.tell("slow requests", f"no request came in time from {self._peer}")
            self.transport.write(_TIMED_OUT)
        self.force_close()

    def _give_up(self) -> None:
        self._unread = None
        if self.transport is not None:
            self._owner.log.tell("unread answers", f"an answer is not read by {self._peer}")
            self.transport.abort()

    # Errors

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what cannot be read (400 and the like), or a failure of our own (500)."""
        if isinstance(exc, web.RequestPayloadError):
            status = HTTPStatus.BAD_REQUEST
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._owner.log.tell("failures", f"no answer to {request.path}", error=exc)
            why = "the server failed"
        else:
            status = self._status_of(status, exc)
            why = HTTPStatus(status).phrase
            # Not what it said: that may be a password sent to the wrong place.
            what = type(exc).__name__
            self._owner.log.tell("bad requests", f"bad request from {self._peer}: {what}")
        if request.writer.output_size > 0:
            raise ConnectionError("the answer was begun, no other can be sent")
        response = self._owner.refusal(status, why)
        response.force_close()
        return response

    def _status_of(self, status: int, error: BaseException | None) -> int:
        if not isinstance(error, LineTooLong):
            return status
        if error.args[1] == self._owner.limits.line:
            return HTTPStatus.REQUEST_URI_TOO_LONG
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE

    def log_exception(self, *args: object, **context: object) -> None:
        """aiohttp's way to report what nobody expected."""
        error = context.get("exc_info")
        shown = error if isinstance(error, BaseException) else None
        self._owner.log.tell("failures", " ".join(map(str, args)), error=shown)

    @property
    def _peer(self) -> str:
        peer = self.peername
        return str(peer[0]) if isinstance(peer, tuple) else "somebody"
