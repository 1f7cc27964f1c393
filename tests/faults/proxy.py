"""A proxy that misbehaves as told: it understands just enough HTTP to know what to break.

Each exchange (one request and its answer) asks ``fate_of`` what shall become of it. Answers that
pass are cut into chunks anew, anywhere. While ``calm`` is set, nothing is harmed any more; what was
silenced before stays silent, as in life.
"""

from __future__ import annotations

import asyncio
import random as randomness
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import final

from tests.faults.harm import UNHARMED, Exchange, Fate, Harm, own_answer
from tests.faults.wire import (
    HOST,
    Answer,
    Backend,
    Inbound,
    Request,
    ReservedPort,
    Upstream,
    cut,
    read_request,
)

_HEAD_LIMIT = 64 * 1024
_REMEMBERED = 12
"""How many past frames a replay chooses from."""


class _Severed(Exception):
    """This connection is to be cut now."""

    def __init__(self, *, hard: bool) -> None:
        self.hard = hard
        super().__init__("cut")


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
            cut(writer, hard=True)
        return len(self._connections)

    def cut_watches(self) -> int:
        """Reset every connection that carries a watch; return how many there were."""
        for writer in self._watching:
            cut(writer, hard=True)
        return len(self._watching)

    # ---- connections ---------------------------------------------------------------------------

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        inbound = Inbound(limit=_HEAD_LIMIT, loop=asyncio.get_running_loop())

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(inbound, writer))
            self._connections[task] = writer
            task.add_done_callback(self._forget)

        return asyncio.StreamReaderProtocol(inbound, connected)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._connections[task]
        if not task.cancelled():
            task.result()  # a mistake in here must show

    async def _serve(self, inbound: Inbound, writer: asyncio.StreamWriter) -> None:
        backend = Backend(self._upstream)
        try:
            while (request := await read_request(inbound)) is not None:
                await self._until_client_leaves(inbound, self._exchange(request, backend, writer))
        except _Severed as severed:
            cut(writer, hard=severed.hard)
        except (OSError, asyncio.IncompleteReadError):  # either side went away
            cut(writer, hard=True)
        finally:
            backend.close()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _until_client_leaves(
        self, inbound: Inbound, exchange: Coroutine[object, object, None]
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
                work.exception()  # looked at here, since a stopped proxy leaves by the next line
        if not work.cancelled():
            work.result()

    # ---- exchanges -----------------------------------------------------------------------------

    async def _exchange(
        self, request: Request, backend: Backend, writer: asyncio.StreamWriter
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
                writer.write(own_answer(fate))
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
        answer: Answer,
        fate: Fate,
        writer: asyncio.StreamWriter,
        backend: Backend,
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
