"""A transport that keeps count of what the bench itself asks of a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import final

from bench.clusters.requests import Kind
from mcm.client.transport import Request, Response, StreamResponse, Transport


@final
class CountingTransport:
    """Passes everything on; ``sent`` has the answered requests, streams left out."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.sent: Counter[Kind] = Counter()

    async def request(self, request: Request) -> Response:
        response = await self._inner.request(request)
        kind = kind_of(request)
        if kind is not None:
            self.sent[kind] += 1
        return response

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        return self._stream(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        async with self._inner.stream(request) as response:
            yield response


def kind_of(request: Request) -> Kind | None:
    """Return what a server counts the request as; None for what concerns no resource."""
    parts = request.path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return None
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    if not rest:
        return None
    resource, name, subresource = (*rest, "", "")[:3]
    verb = "LIST" if request.method == "GET" and not name else request.method
    return Kind(verb, resource, subresource)
