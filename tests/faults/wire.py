"""As much of HTTP as a proxy needs: heads, bodies in chunks, and sockets that can be cut."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import final

HOST = "127.0.0.1"


@final
@dataclass(frozen=True, slots=True)
class Upstream:
    """The server behind the proxy; without ``tls`` it is spoken to in the clear."""

    port: int
    tls: ssl.SSLContext | None = None


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
class Inbound(asyncio.StreamReader):
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
class Request:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    def authorized(self, authorization: str) -> Request:
        if not authorization:
            return self
        return replace(self, headers={**self.headers, "authorization": authorization})

    def encoded(self) -> bytes:
        return _encoded_head(f"{self.method} {self.target} HTTP/1.1", self.headers) + self.body


@final
class Backend:
    """The connection to the server that belongs to one connection of a client."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Request) -> Answer:
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
        return Answer(int(first.split(" ")[1]), first, headers, reader)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


@final
@dataclass(frozen=True, slots=True)
class Answer:
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


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read one request; None if the client has no more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, headers = _head(head)
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


def _head(raw: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _encoded_head(first: str, headers: Mapping[str, str]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def cut(writer: asyncio.StreamWriter, *, hard: bool) -> None:
    if writer.is_closing():
        return
    raw = writer.get_extra_info("socket")
    if hard and raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
