"""The client's transport without a network: requests go straight into an :class:`ApiServer`.

Each request yields to the loop once on its way, as a real one would, so tasks interleave and none
can starve the others. Limits of time are kept as over TCP; under a virtual loop they cost nothing.
A stream is closed when its context is left, and its watch ends on the server in the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import final

from mcm.client.errors import RequestTimeout, TransportError
from mcm.client.transport import Request, Response, StreamResponse
from mcm.sandbox.apiserver.reading.watching import WatchStream
from mcm.sandbox.apiserver.server import ApiServer


@final
class LoopbackTransport:
    """Carries requests to ``server``."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._closed = False
        self._streams: set[LoopbackStream] = set()

    async def request(self, request: Request) -> Response:
        """Send and read the whole answer. Raises TransportError."""
        response = await self._answer(request)
        if isinstance(response, Response):
            return response
        with self._reading(request, response) as stream:
            body = [chunk async for chunk in stream]
        return Response(response.status, response.headers, b"".join(body))

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send; the answer's chunks come as the server has them. Raises TransportError."""
        return self._stream(request)

    async def aclose(self) -> None:
        """Refuse further requests and break the streams under way; idempotent."""
        self._closed = True
        for stream in tuple(self._streams):
            stream.reset()

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        response = await self._answer(request)
        if isinstance(response, Response):
            yield StreamResponse(response.status, response.headers, _Whole(response.body))
            return
        with self._reading(request, response) as stream:
            yield StreamResponse(response.status, response.headers, stream)

    @contextmanager
    def _reading(self, request: Request, response: StreamResponse) -> Iterator[LoopbackStream]:
        stream = LoopbackStream(response.chunks, request.read_timeout)
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            stream.close()

    async def _answer(self, request: Request) -> Response | StreamResponse:
        if self._closed:
            raise TransportError("the transport is closed")
        try:
            async with asyncio.timeout(request.timeout):
                await self._server.clock.sleep(0)
                if request.permit is not None:
                    request.permit()
                return await self._server.handle(request)
        except TimeoutError:
            raise RequestTimeout(
                f"no answer to {request.method} {request.path} within {request.timeout} s"
            ) from None


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
class LoopbackStream(AsyncIterator[bytes]):
    """A watch's chunks as its client reads them. Raises RequestTimeout after ``read_timeout``
    seconds of silence."""

    def __init__(self, chunks: AsyncIterator[bytes], read_timeout: float | None) -> None:
        assert isinstance(chunks, WatchStream)
        self._watch = chunks
        self._read_timeout = read_timeout
        self._broken = False

    def reset(self) -> None:
        """Break the connection: what the server holds for it is lost, and reading on fails."""
        self._broken = True
        self._watch.close()

    def close(self) -> None:
        self._watch.close()

    async def __anext__(self) -> bytes:
        try:
            async with asyncio.timeout(self._read_timeout):
                return await anext(self._watch)
        except TimeoutError:
            raise RequestTimeout(f"no byte for {self._read_timeout} s") from None
        except StopAsyncIteration:
            if self._broken:
                raise TransportError("connection reset") from None
            raise
