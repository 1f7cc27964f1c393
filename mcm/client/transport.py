"""The seam between the client and whatever carries its requests.

Two carriers exist: :class:`mcm.client.http.HTTPTransport` (aiohttp over TCP) and the sandbox's
loopback, which calls an API server in the same process. Both see the same frozen request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


class Lane(Enum):
    """Which connections a request uses: watches never starve writes, nor writes the lease."""

    WATCH = "watch"
    REQUEST = "request"
    LEASE = "lease"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, without credentials: the transport adds those.

    ``path`` starts with a slash and is not escaped twice; ``query`` keeps its order; ``timeout`` is
    the limit in seconds for the whole answer (for a stream: for its headers), ``read_timeout`` the
    longest silence between two reads of a stream. ``permit`` is asked in the moment in which the
    body leaves, however long a connection or credentials took to come about; it raises to forbid.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    lane: Lane = Lane.REQUEST
    timeout: float | None = 30.0
    read_timeout: float | None = None
    permit: Callable[[], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer. Header names are lower case.

    ``refusal`` goes with a 401: which server did not accept whose credentials, and what to do.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class StreamResponse:
    """An answer whose body comes in chunks of any size, cut anywhere."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    refusal: str = ""


class Transport(Protocol):
    """Carries requests to one server. Raises only :class:`mcm.client.errors.TransportError`
    (and subclasses) for anything short of an HTTP status, and what a request's ``permit`` raises;
    never interprets a status, except that it may renew its credentials and repeat once after 401.
    """

    async def request(self, request: Request) -> Response:
        """Send and read the whole answer."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send and yield once the headers are there; leaving the context closes the connection."""
        ...

    async def aclose(self) -> None:
        """Close every connection; idempotent."""
        ...
