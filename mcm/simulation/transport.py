"""A loopback to which faults happen: carries out what a :class:`FaultPlan` decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import replace
from typing import final

from mcm.client.errors import ConnectionRefused, RequestTimeout, TransportError
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import Clock
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackStream, LoopbackTransport
from mcm.simulation.faults import (
    Answered,
    Broken,
    FaultPlan,
    InjectedFaults,
    WatchEnd,
    WatchEnded,
)


@final
class FaultyTransport:
    """Carries requests to ``server`` over a loopback; ``faults`` befall them on the way.

    The limits of time of a request cover the delays that faults add.
    """

    def __init__(self, server: ApiServer, faults: FaultPlan) -> None:
        self._loopback = LoopbackTransport(server)
        self._clock: Clock = server.clock
        self._faults = faults
        self._closed = False

    async def request(self, request: Request) -> Response:
        """Send and read the whole answer. Raises TransportError."""
        async with self._stream(request) as response:
            body = [chunk async for chunk in response.chunks]
        return Response(response.status, response.headers, b"".join(body))

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send; the answer's chunks come as the server has them. Raises TransportError."""
        return self._stream(request)

    async def aclose(self) -> None:
        """Refuse further requests and break the streams under way; idempotent."""
        self._closed = True
        await self._loopback.aclose()

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        if self._closed:
            raise TransportError("the transport is closed")
        injected = self._faults.decide(request)
        async with AsyncExitStack() as connection:
            try:
                async with asyncio.timeout(request.timeout):
                    response = await self._exchange(request, injected, connection)
            except TimeoutError:
                raise RequestTimeout(
                    f"no answer to {request.method} {request.path} within {request.timeout} s"
                ) from None
            if isinstance(response.chunks, LoopbackStream):
                reader = _Reader(response.chunks, request.read_timeout, self._clock, injected.lag)
                connection.enter_context(self._ending(reader, injected))
                response = replace(response, chunks=reader)
            yield response

    async def _exchange(
        self, request: Request, injected: InjectedFaults, connection: AsyncExitStack
    ) -> StreamResponse:
        """Send ``request``, and enter the answer's context on ``connection``."""
        failure = injected.failure
        if injected.before:
            await self._clock.sleep(injected.before)
        match failure:
            case Broken.REFUSED:
                await self._clock.sleep(0)
                raise ConnectionRefused("connection refused")
            case Broken.RESET:
                await self._clock.sleep(0)
                raise TransportError("connection reset before the request was read")
            case Broken.HANGS:
                await asyncio.get_running_loop().create_future()
        if isinstance(failure, Answered):
            await self._clock.sleep(0)
            answer = failure.response
            response = StreamResponse(answer.status, answer.headers, _whole(answer.body))
        else:
            untimed = replace(request, timeout=None, read_timeout=None)
            response = await connection.enter_async_context(self._loopback.stream(untimed))
        if injected.after:
            await self._clock.sleep(injected.after)
        if failure is Broken.LOST:
            raise TransportError("connection reset before the answer was read")
        return response

    @contextmanager
    def _ending(self, reader: _Reader, injected: InjectedFaults) -> Iterator[None]:
        """While the context lasts, ``reader`` ends as planned, or when the plan cuts watches."""
        try:
            with self._faults.running(reader.end):
                for ending in injected.endings:
                    reader.schedule(ending)
                yield
        finally:
            reader.close()


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


@final
class _Reader(AsyncIterator[bytes]):
    """A watch's chunks as they come over a connection that may fail."""

    def __init__(
        self, stream: LoopbackStream, read_timeout: float | None, clock: Clock, lag: float
    ) -> None:
        self._stream = stream
        self._read_timeout = read_timeout
        self._clock = clock
        self._lag = lag
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
            self._stream.reset()

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()

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
            chunk = await anext(self._stream)
            if self._lag:
                await self._clock.sleep(self._lag)
            return b"" if self._ending is not None else self._counted(chunk)
        except (StopAsyncIteration, TransportError):
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
