"""A proxy that misbehaves as told: it understands just enough HTTP to know what to break.

Each exchange (one request and its answer) asks ``fate_of`` what shall become of it. Answers that
pass are cut into chunks anew, anywhere. While ``calm`` is set, nothing is harmed any more; what was
silenced before stays silent, as in life.
"""

from __future__ import annotations

import asyncio
import random as randomness
import socket
import ssl
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise
from typing import final

HOST = "127.0.0.1"
_HEAD_LIMIT = 64 * 1024
_REMEMBERED = 12
"""How many past frames a replay chooses from."""


class Harm(Enum):
    """What becomes of an exchange. The word *frames* stands for ``Fate.frames``: how many frames of
    a watch pass unharmed first. A list has no frames: half of its body passes."""

    NONE = auto()
    DELAYED = auto()  # the request arrives late, behind those that were sent after it
    UNHEARD = auto()  # cut before the headers; the server never sees the request
    UNANSWERED = auto()  # cut before the headers; the server has served the request
    HEADERS_ONLY = auto()  # cut after the headers
    CUT_IN_LINE = auto()  # frames, half a frame, cut
    CUT_BETWEEN = auto()  # frames, cut
    ENDED = auto()  # frames, then an end in good order
    TRUNCATED = auto()  # frames, half a frame, then an end in good order
    STALLED = auto()  # frames, a pause, the rest
    REPLAYED = auto()  # frames, then again and again some earlier ones between the others
    SILENT = auto()  # accepted, never answered
    FROZEN = auto()  # frames, then nothing, and no end
    ANSWERED = auto()  # the proxy answers by itself, with ``Fate.code``
    LAST_WORDS = auto()  # frames, ``Fate.line``, then an end in good order


@final
@dataclass(frozen=True, slots=True)
class Fate:
    """``seconds``: of a delay or stall. ``hard``: a cut is a reset rather than an end of file.
    ``retry_after`` goes with an answer, if not empty."""

    harm: Harm = Harm.NONE
    frames: int = 0
    seconds: float = 0.0
    hard: bool = False
    code: int = 0
    retry_after: str = ""
    line: bytes = b""

    def __str__(self) -> str:
        parts = [self.harm.name.lower()]
        parts += [f"frames={self.frames}"] if self.frames else []
        parts += [f"seconds={self.seconds:.3f}"] if self.seconds else []
        parts += [f"code={self.code}"] if self.code else []
        parts += [f"retry_after={self.retry_after}"] if self.retry_after else []
        parts += [f"line={self.line[:40]!r}"] if self.line else []
        return " ".join(parts)


UNHARMED = Fate()


@final
@dataclass(frozen=True, slots=True)
class Exchange:
    """A request as the proxy sees it; ``number`` counts them from 1."""

    number: int
    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def watch(self) -> bool:
        return "watch=1" in self.target


@final
@dataclass(frozen=True, slots=True)
class Upstream:
    """The server behind the proxy; without ``tls`` it is spoken to in the clear."""

    port: int
    tls: ssl.SSLContext | None = None


class _Severed(Exception):
    """This connection is to be cut now."""

    def __init__(self, *, hard: bool) -> None:
        self.hard = hard
        super().__init__("cut")


@final
class ReservedPort:
    """A port that stays ours while nobody listens on it: connections are refused then."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((HOST, 0))
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        self._socket.close()


@final
class FaultyProxy:
    """Use as ``async with proxy.running()``. ``tls`` is what its own clients meet, None: no TLS.
    ``authorization`` replaces what they sent, if not empty: who may come in is decided here then.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        fate_of: Callable[[Exchange], Fate],
        random: randomness.Random,
        tls: ssl.SSLContext | None = None,
        authorization: str = "",
    ) -> None:
        self.calm = False
        self.exchanges = 0
        self._upstream = upstream
        self._fate_of = fate_of
        self._random = random
        self._tls = tls
        self._authorization = authorization
        self._port = ReservedPort()
        self._watching: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{HOST}:{self._port.number}"

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            await self.accept()
            yield
        finally:
            self.refuse()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            self._port.close()

    async def accept(self) -> None:
        """Listen (again)."""
        loop = asyncio.get_running_loop()
        if self._server is None:
            self._server = await loop.create_server(
                self._protocol, HOST, self._port.number, ssl=self._tls
            )

    def refuse(self) -> None:
        """Refuse connections until ``accept``; those there are go on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def cut_all(self) -> int:
        """Reset every connection; return how many there were."""
        for writer in self._connections.values():
            _cut(writer, hard=True)
        return len(self._connections)

    def cut_watches(self) -> int:
        """Reset every connection that carries a watch; return how many there were."""
        for writer in self._watching:
            _cut(writer, hard=True)
        return len(self._watching)

    # ---- connections ---------------------------------------------------------------------------

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        inbound = _Inbound(limit=_HEAD_LIMIT, loop=asyncio.get_running_loop())

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(inbound, writer))
            self._connections[task] = writer
            task.add_done_callback(self._forget)

        return asyncio.StreamReaderProtocol(inbound, connected)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._connections[task]
        if not task.cancelled():
            task.result()  # a mistake in here must show

    async def _serve(self, inbound: _Inbound, writer: asyncio.StreamWriter) -> None:
        backend = _Backend(self._upstream)
        try:
            while (request := await _read_request(inbound)) is not None:
                await self._until_client_leaves(inbound, self._exchange(request, backend, writer))
        except _Severed as cut:
            _cut(writer, hard=cut.hard)
        except (OSError, asyncio.IncompleteReadError):  # either side went away
            _cut(writer, hard=True)
        finally:
            backend.close()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _until_client_leaves(
        self, inbound: _Inbound, exchange: Coroutine[object, object, None]
    ) -> None:
        """Do ``exchange`` unless the client goes away meanwhile: nobody would read the rest."""
        work = asyncio.ensure_future(exchange)
        left = asyncio.ensure_future(inbound.ended.wait())
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            if not work.done():
                work.cancel()
            await asyncio.wait({work, left})
        if not work.cancelled():
            work.result()

    # ---- exchanges -----------------------------------------------------------------------------

    async def _exchange(
        self, request: _Request, backend: _Backend, writer: asyncio.StreamWriter
    ) -> None:
        self.exchanges += 1
        exchange = Exchange(self.exchanges, request.method, request.target, request.headers)
        fate = UNHARMED if self.calm else self._fate_of(exchange)
        match fate.harm:
            case Harm.UNHEARD:
                raise _Severed(hard=fate.hard)
            case Harm.SILENT:
                await _for_ever()
            case Harm.ANSWERED:
                writer.write(_own_answer(fate))
                await writer.drain()
                return
            case Harm.DELAYED:
                await _pause(fate.seconds)
        answer = await backend.ask(request.authorized(self._authorization))
        if fate.harm is Harm.UNANSWERED:
            raise _Severed(hard=fate.hard)
        await self._relay(answer, fate, writer, backend, watch=exchange.watch)

    async def _relay(
        self,
        answer: _Answer,
        fate: Fate,
        writer: asyncio.StreamWriter,
        backend: _Backend,
        *,
        watch: bool,
    ) -> None:
        writer.write(answer.head())
        if fate.harm is Harm.HEADERS_ONLY:
            await writer.drain()
            raise _Severed(hard=fate.hard)
        relay = _Relay(self, fate, writer, chunked=answer.chunked)
        if watch and answer.status == 200:
            self._watching.add(writer)
            try:
                if not await relay.frames(answer.chunks()):
                    backend.close()  # the server is still sending there
            finally:
                self._watching.discard(writer)
        else:
            await relay.body(b"".join([chunk async for chunk in answer.chunks()]))

    def pieces(self, data: bytes) -> list[bytes]:
        """Cut ``data`` at a few places, any at all."""
        random = self._random
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randint(0, 3)))
        return [data[a:b] for a, b in pairwise((0, *cuts, len(data))) if a < b]

    def some_of(self, frames: deque[bytes]) -> list[bytes]:
        """Choose frames to send once more, if any, in the order in which they were."""
        if not frames or self._random.random() < 0.6:
            return []
        first = self._random.randrange(len(frames))
        last = self._random.randint(first, len(frames) - 1)
        return list(frames)[first : last + 1]


@final
class _Relay:
    """Sends one answer's body on, harmed as ``fate`` says."""

    def __init__(
        self, proxy: FaultyProxy, fate: Fate, writer: asyncio.StreamWriter, *, chunked: bool
    ) -> None:
        self._proxy = proxy
        self._fate = fate
        self._writer = writer
        self._chunked = chunked
        self._harmed = False

    async def body(self, body: bytes) -> None:
        """Send a body that is complete."""
        harm = self._fate.harm
        half = len(body) // 2
        if harm in (Harm.CUT_IN_LINE, Harm.CUT_BETWEEN, Harm.TRUNCATED):
            await self._send(body[:half])
            if harm is Harm.TRUNCATED and self._chunked:
                await self._end()
                return
            raise _Severed(hard=self._fate.hard)
        if harm in (Harm.FROZEN, Harm.STALLED):
            await self._send(body[:half])
            await (_for_ever() if harm is Harm.FROZEN else _pause(self._fate.seconds))
            body = body[half:]
        await self._send(body)
        await self._end()

    async def frames(self, chunks: AsyncIterator[bytes]) -> bool:
        """Send the frames of a watch as they come; tell whether the server had its last word."""
        sent: deque[bytes] = deque(maxlen=_REMEMBERED)
        if self._fate.harm in (Harm.ENDED, Harm.LAST_WORDS) and not self._fate.frames:
            await self._harm(b"", sent)
            return False
        passed = 0
        rest = b""
        async for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                frame = line + b"\n"
                if passed >= self._fate.frames and await self._harm(frame, sent):
                    return False
                await self._send(frame)
                sent.append(frame)
                passed += 1
        if rest:
            await self._send(rest)
        await self._end()
        return True

    async def _harm(self, frame: bytes, sent: deque[bytes]) -> bool:
        """Do the harm in front of ``frame``, once (replays: often); tell whether the answer has
        ended with it."""
        fate = self._fate
        if self._harmed or self._proxy.calm:
            return False
        self._harmed = fate.harm is not Harm.REPLAYED
        match fate.harm:
            case Harm.CUT_BETWEEN:
                raise _Severed(hard=fate.hard)
            case Harm.CUT_IN_LINE:
                await self._send(frame[: len(frame) // 2])
                raise _Severed(hard=fate.hard)
            case Harm.FROZEN:
                await _for_ever()
            case Harm.STALLED:
                await _pause(fate.seconds)
            case Harm.REPLAYED:
                for earlier in self._proxy.some_of(sent):
                    await self._send(earlier)
            case Harm.TRUNCATED | Harm.ENDED | Harm.LAST_WORDS:
                torn = fate.harm is Harm.TRUNCATED
                await self._send(frame[: len(frame) // 2] if torn else fate.line)
                await self._end()
                return True
        return False

    async def _send(self, data: bytes) -> None:
        for piece in self._proxy.pieces(data):
            self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
        await self._writer.drain()

    async def _end(self) -> None:
        if self._chunked:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()


# ---- the two sides -----------------------------------------------------------------------------


@final
class _Inbound(asyncio.StreamReader):
    """A reader that can tell at any time whether the peer has left."""

    def __init__(self, *, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.ended = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.ended.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.ended.set()


@final
@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    def authorized(self, authorization: str) -> _Request:
        if not authorization:
            return self
        return replace(self, headers={**self.headers, "authorization": authorization})

    def encoded(self) -> bytes:
        return _encoded_head(f"{self.method} {self.target} HTTP/1.1", self.headers) + self.body


@final
class _Backend:
    """The connection to the server that belongs to one connection of a client."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: _Request) -> _Answer:
        if self._streams is not None and self._streams[0].at_eof():
            self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                HOST, self._upstream.port, ssl=self._upstream.tls, limit=4 * 1024 * 1024
            )
        reader, writer = self._streams
        writer.write(request.encoded())
        await writer.drain()
        first, headers = _head(await reader.readuntil(b"\r\n\r\n"))
        return _Answer(int(first.split(" ")[1]), first, headers, reader)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


@final
@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    first: str
    headers: Mapping[str, str]
    reader: asyncio.StreamReader

    @property
    def chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "") == "chunked"

    def head(self) -> bytes:
        return _encoded_head(self.first, self.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        if not self.chunked:
            yield await self.reader.readexactly(int(self.headers.get("content-length", "0")))
            return
        while (size := int(await self.reader.readuntil(b"\r\n"), 16)) > 0:
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readuntil(b"\r\n")


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    """Read one request; None if the client has no more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, headers = _head(head)
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return _Request(method, target, headers, body)


def _head(raw: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _encoded_head(first: str, headers: Mapping[str, str]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


_REASONS = {401: "Unauthorized", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}


def status_document(code: int) -> bytes:
    """Return the Status an API server would send with ``code``."""
    reason = _REASONS.get(code, "")
    return (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        b'"message":"made up by a proxy","reason":"%b","code":%d}' % (reason.encode(), code)
    )


def error_event(code: int) -> bytes:
    return b'{"type":"ERROR","object":%b}\n' % status_document(code)


def _own_answer(fate: Fate) -> bytes:
    """``line`` is the body, or else a Status."""
    body = fate.line or status_document(fate.code)
    wait = f"Retry-After: {fate.retry_after}\r\n" if fate.retry_after else ""
    head = (
        f"HTTP/1.1 {fate.code} Made Up\r\nContent-Type: application/json\r\n{wait}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _cut(writer: asyncio.StreamWriter, *, hard: bool) -> None:
    if writer.is_closing():
        return
    raw = writer.get_extra_info("socket")
    if hard and raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _pause(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    timer = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()
