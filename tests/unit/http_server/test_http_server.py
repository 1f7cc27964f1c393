"""What clients may do to a server over real sockets: who misbehaves is cut, others are served."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import ClassVar

import pytest
from aiohttp import web

from mcm.clock import SystemClock
from mcm.http_server import Limits, listening, read_body
from mcm.rate_limited_log import RateLimitedLog

CLOCK = SystemClock()
USUAL = Limits()
SHORT = Limits(head=0.2, body=0.2, idle=30.0, unread=0.2)
PATIENCE = 10.0  # seconds until a test that hangs has failed
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Client:
    """One raw connection."""

    made: ClassVar[list[Client]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.heard = b""
        self.made.append(self)

    @classmethod
    async def to(cls, port: int, first: bytes = b"") -> Client:
        client = cls(*await asyncio.open_connection("127.0.0.1", port))
        client.writer.write(first)
        return client

    async def drip(self, data: bytes, times: int) -> None:
        """Send ``data`` again and again, slowly, until the server says something."""
        for _ in range(times):
            if self.heard or self.reader.at_eof():
                return
            try:
                self.writer.write(data)
                await self.writer.drain()
            except ConnectionError:
                return
            await CLOCK.sleep(0.02)

    async def answer(self) -> tuple[int, bytes]:
        """Read one answer that says its length; return status and body."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            status = int(head.split()[1])
            [length] = [
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ]
            return status, await self.reader.readexactly(length)

    async def status(self) -> int:
        """Read the last answer, until the server closes; return its status."""
        return int((await self.rest()).split()[1])

    async def rest(self) -> bytes:
        """Read until the server closes; what came before it lost patience is not forgotten."""
        with suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE):
                while piece := await self.reader.read(65536):
                    self.heard += piece
        return self.heard

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@pytest.fixture(autouse=True)
async def _close_clients() -> AsyncIterator[None]:
    yield
    while Client.made:
        await Client.made.pop().close()


async def ok(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="ok")


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    try:
        return web.Response(body=await read_body(request, SHORT))
    except TimeoutError:
        return web.Response(status=408, text="slow")


@asynccontextmanager
async def serving(handler: object = ok, limits: Limits = USUAL) -> AsyncIterator[int]:
    assert callable(handler)
    async with listening(handler, host="127.0.0.1", port=0, clock=CLOCK, limits=limits) as port:
        yield port


# ---- deadlines -----------------------------------------------------------------------------------


async def test_a_head_that_never_ends_is_cut() -> None:
    async with serving(limits=SHORT) as port:
        client = await Client.to(port, b"GET / HTTP/1.1\r\nHost: x\r\n")
        dripping = asyncio.create_task(client.drip(b"X-Slow: 1\r\n", 400))
        assert await client.status() == 408
        dripping.cancel()


async def test_a_peer_that_says_nothing_is_cut() -> None:
    async with serving(limits=SHORT) as port:
        client = await Client.to(port)
        assert await client.status() == 408


async def test_a_second_head_that_never_ends_is_cut_as_well() -> None:
    async with serving(limits=SHORT) as port:
        client = await Client.to(port, GET)
        assert await client.answer() == (200, b"ok")
        client.writer.write(b"GET / HT")
        assert await client.status() == 408


async def test_a_body_that_never_ends_is_refused() -> None:
    async with serving(echo, SHORT) as port:
        client = await Client.to(
            port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"
        )
        dripping = asyncio.create_task(client.drip(b"x", 400))
        assert await client.status() == 408
        dripping.cancel()


async def test_an_idle_connection_may_be_used_again_after_longer_than_a_head_may_take() -> None:
    async with serving(echo, SHORT) as port:
        client = await Client.to(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
        assert await client.answer() == (200, b"hi")
        await CLOCK.sleep(3 * SHORT.head)
        client.writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nyou")
        assert await client.answer() == (200, b"you")


async def test_a_long_answer_that_is_read_is_not_cut() -> None:
    async def stream(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = 50
        await response.prepare(request)
        for _ in range(50):
            await response.write(b"x")
            await CLOCK.sleep(SHORT.head / 10)
        return response

    async with serving(stream, SHORT) as port:
        client = await Client.to(port, GET)
        assert await client.answer() == (200, b"x" * 50)


async def test_an_answer_that_nobody_reads_is_given_up() -> None:
    given_up = asyncio.Event()

    async def flood(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
        finally:
            given_up.set()

    async with serving(flood, SHORT) as port:
        client = await Client.to(port, GET)
        async with asyncio.timeout(PATIENCE):
            await given_up.wait()
        assert not client.reader.at_eof()


# ---- how many ------------------------------------------------------------------------------------


async def test_whoever_comes_too_many_waits_for_a_place() -> None:
    release, busy = asyncio.Event(), 0

    async def hold(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal busy
        busy += 1
        await release.wait()
        busy -= 1
        return web.Response(text="ok")

    async with serving(hold, Limits(connections=4)) as port:
        clients = [await Client.to(port, GET) for _ in range(7)]
        async with asyncio.timeout(PATIENCE):
            while busy < 4:
                await CLOCK.sleep(0.01)
        await CLOCK.sleep(0.2)
        assert busy == 4
        release.set()
        assert [await client.answer() for client in clients] == [(200, b"ok")] * 7


async def test_whoever_is_idle_longest_makes_room() -> None:
    async with serving(ok, Limits(connections=4, rest=0.1)) as port:
        clients = [await Client.to(port, GET) for _ in range(4)]
        for client in clients:
            assert (await client.answer())[0] == 200
        late = await Client.to(port, GET)
        assert await late.answer() == (200, b"ok")
        assert await clients[0].rest() == b""
        clients[3].writer.write(GET)
        assert await clients[3].answer() == (200, b"ok")


async def test_whoever_asks_again_and_again_makes_no_room() -> None:
    """As who renews a lease does: idle between two requests, but not to be cut for newcomers."""
    async with serving(ok, Limits(connections=4, head=0.3, rest=1.0)) as port:
        lease = await Client.to(port, GET)
        assert await lease.answer() == (200, b"ok")
        crowd = [await Client.to(port) for _ in range(12)]  # say nothing, in three shifts
        for _ in range(12):
            await CLOCK.sleep(0.1)
            lease.writer.write(GET)
            assert await lease.answer() == (200, b"ok")
        assert crowd


def test_a_server_takes_a_quarter_of_the_descriptors_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def allowed(number: int) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (number, number))

    places: list[int] = []
    for number in (1024, 256, 64, 8, resource.RLIM_INFINITY):
        allowed(number)
        places.append(Limits(connections=200).places())
    assert places == [200, 64, 16, 4, 200]


# ---- what cannot be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 431),
    ],
)
async def test_what_is_no_request_costs_one_line(
    sent: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as port:
        client = await Client.to(port, sent)
        assert await client.status() == status
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.exc_info is None
    assert "\n" not in record.getMessage()
    assert "127.0.0.1" in record.getMessage()


async def test_a_flood_of_nonsense_is_no_flood_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as port:
        for _ in range(1000):
            client = await Client.to(port, b"Authorization: Bearer s3cret\r\n\r\n")
            assert await client.status() == 400
        good = await Client.to(port, GET)
        assert await good.answer() == (200, b"ok")
    assert 1 <= len(caplog.records) <= 5
    assert "s3cret" not in caplog.text


async def test_a_failure_of_ours_is_told_with_its_traceback_and_not_for_each_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(request: web.BaseRequest) -> web.StreamResponse:
        raise KeyError("ours")

    async with serving(fail) as port:
        for _ in range(20):
            client = await Client.to(port, GET)
            status, body = await client.answer()
            assert status == 500
            assert b"ours" not in body
    [record] = caplog.records
    assert record.exc_info is not None


@pytest.mark.parametrize("late", [False, True])
async def test_a_malformed_body_is_the_peers_fault(
    caplog: pytest.LogCaptureFixture, *, late: bool
) -> None:
    async with serving(echo, SHORT) as port:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        client = await Client.to(port, head)
        await CLOCK.sleep(SHORT.body / 10 if late else 0)
        client.writer.write(b"zz\r\nx\r\n")
        # What comes late finds the handler waiting for the rest, until its time is up.
        assert await client.status() == (408 if late else 400)
    assert all(record.exc_info is None for record in caplog.records)


# ---- the address, the end ------------------------------------------------------------------------


async def test_a_name_with_several_addresses_is_served_on_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()

    async def two(*args: object, **kwargs: object) -> Sequence[object]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, ("127.0.0.1", 0)), (*kind, ("127.0.0.2", 0))]

    monkeypatch.setattr(loop, "getaddrinfo", two)
    async with listening(ok, host="both", port=0, clock=CLOCK) as port:
        monkeypatch.undo()
        for host in ("127.0.0.1", "127.0.0.2"):
            client = Client(*await asyncio.open_connection(host, port))
            client.writer.write(GET)
            assert await client.answer() == (200, b"ok")


async def test_the_end_cuts_whoever_is_still_there() -> None:
    async with serving() as port:
        idle = await Client.to(port, GET)
        await idle.answer()
        speaking = await Client.to(port, b"GET / HT")
    assert await idle.rest() == b""
    assert await speaking.rest() == b""
    with pytest.raises(ConnectionRefusedError):
        await Client.to(port)


class Ticking:
    """A clock that is moved by hand."""

    time = 0.0

    def now(self) -> datetime:
        raise AssertionError("nobody needs to know")

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def test_the_next_line_says_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    clock = Ticking()
    log = RateLimitedLog(logging.getLogger(__name__), clock)
    with caplog.at_level(logging.INFO):
        for second in range(125):
            clock.time = float(second)
            log.tell("trouble", "it happened")
        log.tell("another", "so did this")
    assert [record.getMessage() for record in caplog.records] == [
        "it happened",
        "it happened (59 more since the last line about trouble)",
        "it happened (59 more since the last line about trouble)",
        "so did this",
    ]


async def test_a_connection_that_comes_while_the_server_ends_is_closed() -> None:
    """Whoever is accepted at that moment has no owner yet but must not be forgotten."""

    async def hello(_: web.BaseRequest) -> web.Response:
        return web.Response(text="hello")

    for turns in range(8):
        clients = []
        async with listening(hello, host="127.0.0.1", port=0, clock=CLOCK) as port:
            for _ in range(5):
                client = socket.socket()
                clients.append(client)
                client.setblocking(False)
                with suppress(BlockingIOError):
                    client.connect(("127.0.0.1", port))
            for _ in range(turns):
                await CLOCK.sleep(0)
        for client in clients:
            client.setblocking(True)
            client.settimeout(PATIENCE)
            with suppress(ConnectionError):
                assert client.recv(1) == b""
            client.close()
        gc.collect()  # a socket that nobody closed fails the test by its warning
