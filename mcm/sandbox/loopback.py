"""The client's transport without a network: requests go straight into an :class:`ApiServer`.

Each request yields to the loop once on its way, as a real one would, so tasks interleave and none
can starve the others. Limits of time are kept as over TCP; under a virtual loop they cost nothing.
A stream is closed when its context is left, and its watch ends on the server in the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import final

from mcm.client.errors import ConnectionRefused, RequestTimeout, TransportError
from mcm.client.transport import Request, Response, StreamResponse
from mcm.sandbox.apiserver.watching import WatchStream
from mcm.sandbox.faults import Answered, Broken, FaultPlan, Verdict, WatchEnd, WatchEnded
from mcm.sandbox.server import ApiServer

_NO_FAULTS = Verdict()


@final
class LoopbackTransport:
    """Carries requests to ``server``; ``faults`` befall them on the way."""

    def __init__(self, server: ApiServer, *, faults: FaultPlan | None = None) -> None:
        self._server = server
        self._faults = faults
        self._closed = False
        self._readers: set[_Reader] = set()

    async def request(self, request: Request) -> Response:
        """Send and read the whole answer. Raises TransportError."""
        verdict = self._verdict(request)
        response = await self._answer(request, verdict)
        if isinstance(response, Response):
            return response
        with self._reading(request, response, verdict) as reader:
            body = [chunk async for chunk in reader]
        return Response(response.status, response.headers, b"".join(body))

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send; the answer's chunks come as the server has them. Raises TransportError."""
        return self._stream(request)

    async def aclose(self) -> None:
        """Refuse further requests and break the streams under way; idempotent."""
        self._closed = True
        for reader in tuple(self._readers):
            reader.end(WatchEnded(WatchEnd.RESET))

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        verdict = self._verdict(request)
        response = await self._answer(request, verdict)
        if isinstance(response, Response):
            yield StreamResponse(response.status, response.headers, _Whole(response.body))
            return
        with self._reading(request, response, verdict) as reader:
            yield StreamResponse(response.status, response.headers, reader)

    def _verdict(self, request: Request) -> Verdict:
        if self._closed:
            raise TransportError("the transport is closed")
        return self._faults.decide(request) if self._faults is not None else _NO_FAULTS

    @contextmanager
    def _reading(
        self, request: Request, response: StreamResponse, verdict: Verdict
    ) -> Iterator[_Reader]:
        reader = _Reader(response.chunks, request.read_timeout)
        watched = self._faults.running(reader.end) if self._faults is not None else nullcontext()
        self._readers.add(reader)
        try:
            with watched:
                for ending in verdict.endings:
                    reader.schedule(ending)
                yield reader
        finally:
            self._readers.discard(reader)
            reader.close()

    async def _answer(self, request: Request, verdict: Verdict) -> Response | StreamResponse:
        try:
            async with asyncio.timeout(request.timeout):
                return await self._exchange(request, verdict)
        except TimeoutError:
            raise RequestTimeout(
                f"no answer to {request.method} {request.path} within {request.timeout} s"
            ) from None

    async def _exchange(self, request: Request, verdict: Verdict) -> Response | StreamResponse:
        clock, failure = self._server.clock, verdict.failure
        await clock.sleep(verdict.before)
        match failure:
            case Broken.REFUSED:
                raise ConnectionRefused("connection refused")
            case Broken.RESET:
                raise TransportError("connection reset before the request was read")
            case Broken.HANGS:
                await asyncio.get_running_loop().create_future()
        if isinstance(failure, Answered):
            response: Response | StreamResponse = failure.response
        else:
            if request.permit is not None:
                request.permit()
            response = await self._server.handle(request)
        try:
            if verdict.after:
                await clock.sleep(verdict.after)
        except BaseException:
            _discard(response)
            raise
        if failure is Broken.LOST:
            _discard(response)
            raise TransportError("connection reset before the answer was read")
        return response


def _discard(response: Response | StreamResponse) -> None:
    if isinstance(response, StreamResponse) and isinstance(response.chunks, WatchStream):
        response.chunks.close()


@final
class _Whole(AsyncIterator[bytes]):
    """A complete body as one chunk."""

    def __init__(self, body: bytes) -> None:
        self._rest = body

    async def __anext__(self) -> bytes:
        chunk, self._rest = self._rest, b""
        if not chunk:
            raise StopAsyncIteration
        return chunk


@final
class _Reader(AsyncIterator[bytes]):
    """A watch's chunks as they come over a connection that may fail."""

    def __init__(self, chunks: AsyncIterator[bytes], read_timeout: float | None) -> None:
        assert isinstance(chunks, WatchStream)
        self._stream = chunks
        self._read_timeout = read_timeout
        self._ending: WatchEnded | None = None
        self._events_left: tuple[int, WatchEnded] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._last_words: list[bytes] = []

    def schedule(self, ending: WatchEnded) -> None:
        if ending.events is not None:
            self._events_left = (ending.events, ending)
        if ending.after is not None:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(ending.after, self.end, ending))

    def end(self, ending: WatchEnded) -> None:
        """Let the connection fail now; what the server holds for it is lost."""
        if self._ending is None:
            self._ending = ending
            if ending.line:
                self._last_words.append(ending.line)
            self._stream.close()

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._stream.close()

    async def __anext__(self) -> bytes:
        try:
            async with asyncio.timeout(self._read_timeout):
                return await self._next()
        except TimeoutError:
            raise RequestTimeout(f"no byte for {self._read_timeout} s") from None

    async def _next(self) -> bytes:
        if self._ending is None:
            chunk = await self._until_end()
            if chunk:
                return chunk
        if self._last_words:
            return self._last_words.pop()
        assert self._ending is not None
        return await self._fail(self._ending)

    async def _until_end(self) -> bytes:
        """Return the next chunk; nothing once the connection has failed."""
        try:
            return self._counted(await self._stream.__anext__())
        except StopAsyncIteration:
            if self._ending is None:
                raise
            return b""

    async def _fail(self, ending: WatchEnded) -> bytes:
        match ending.how:
            case WatchEnd.CLOSED:
                raise StopAsyncIteration
            case WatchEnd.FROZEN:
                await asyncio.get_running_loop().create_future()
        raise TransportError("connection reset")

    def _counted(self, chunk: bytes) -> bytes:
        """Cut a chunk where the events of a fault's budget end."""
        if self._events_left is None:
            return chunk
        left, ending = self._events_left
        lines = chunk.splitlines(keepends=True)
        torn = ending.how is WatchEnd.TORN
        if len(lines) < left or (torn and len(lines) == left):
            self._events_left = (left - len(lines), ending)
            return chunk
        self.end(ending)
        kept = lines[:left]
        if torn:
            kept.append(lines[left][: len(lines[left]) // 2])
        return b"".join(kept)
