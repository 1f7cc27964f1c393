from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mcm.client.connection import (
    BasicAuth,
    ExecPlugin,
    Impersonation,
    NoCredentials,
    StaticToken,
    TokenFile,
)
from mcm.client.errors import (
    ConfigurationError,
    ConnectionRefused,
    CredentialsError,
    NameResolutionError,
    RequestTimeout,
    TransportError,
)
from mcm.client.http import HTTPTransport
from mcm.client.sockets import open_socket
from mcm.client.transport import Lane, Request

SENTINEL = "s3ntinel-t0ken"

Connect = Callable[..., HTTPTransport]


async def echo(request: web.BaseRequest) -> web.Response:
    seen = {
        "method": request.method,
        "path": request.raw_path,
        "headers": [[name.lower(), value] for name, value in request.headers.items()],
        "body": (await request.read()).decode(),
    }
    return web.json_response(seen, headers={"X-Mixed-Case": "yes"})


async def seen(transport: HTTPTransport, request: Request) -> dict[str, Any]:
    response = await transport.request(request)
    assert response.status == 200
    body: dict[str, Any] = json.loads(response.body)
    return body


async def test_a_request_arrives_as_it_was_prepared(serve: Any, connect: Connect) -> None:
    transport = connect(await serve(echo))
    request = Request(
        "PATCH",
        "/api/v1/nodes/a%20b",
        query=(("labelSelector", "a in (b,c),d=é"), ("continue", "x+/=")),
        headers={"Content-Type": "application/merge-patch+json", "User-Agent": "mcm/1"},
        body=b'{"a":1}',
    )
    got = await seen(transport, request)
    assert (got["method"], got["body"]) == ("PATCH", '{"a":1}')
    assert got["path"] == (
        "/api/v1/nodes/a%20b?labelSelector=a+in+%28b%2Cc%29%2Cd%3D%C3%A9&continue=x%2B%2F%3D"
    )
    headers = dict(got["headers"])
    assert headers["content-type"] == "application/merge-patch+json"
    assert headers["user-agent"] == "mcm/1"
    assert headers["accept"] == "application/json"
    assert not headers.keys() & {"accept-encoding", "authorization", "cookie"}


class Revoked(Exception):
    pass


async def test_a_write_that_is_forbidden_while_its_connection_is_made_never_leaves(
    serve: Any, connect: Connect
) -> None:
    async def read(request: web.BaseRequest) -> web.Response:
        arrived.append((await request.read()).decode())
        return web.Response(body=b"{}")

    def permit() -> None:
        asked.append(len(arrived))
        if forbidden:
            raise Revoked

    arrived: list[str] = []
    asked: list[int] = []
    transport = connect(await serve(read))
    request = Request("PATCH", "/", body=b"first", permit=permit)
    for forbidden in (True, False, True):  # on a new connection, and on one that is open
        if forbidden:
            with pytest.raises(Revoked):
                await transport.request(request)
        else:
            await transport.request(request)
    assert (arrived, asked) == (["first"], [0, 0, 1])


async def test_answers_have_lower_case_headers_and_any_status(serve: Any, connect: Connect) -> None:
    async def teapot(request: web.BaseRequest) -> web.Response:
        return web.Response(status=418, body=b"short", headers={"Retry-After": "3"})

    transport = connect(await serve(teapot))
    response = await transport.request(Request("GET", "/"))
    assert (response.status, response.body) == (418, b"short")
    assert response.headers["retry-after"] == "3"


async def test_a_compressed_list_is_unpacked(serve: Any, connect: Connect) -> None:
    async def packed(request: web.BaseRequest) -> web.Response:
        assert request.headers["Accept-Encoding"] == "gzip"
        return web.Response(body=gzip.compress(b"long" * 99), headers={"Content-Encoding": "gzip"})

    request = Request("GET", "/", headers={"Accept-Encoding": "gzip"})
    assert (await connect(await serve(packed)).request(request)).body == b"long" * 99


async def test_compression_can_be_switched_off(serve: Any, connect: Connect) -> None:
    transport = connect(await serve(echo), compression=False)
    got = await seen(transport, Request("GET", "/", headers={"Accept-Encoding": "gzip"}))
    assert "accept-encoding" not in dict(got["headers"])


async def test_redirects_are_not_followed_and_cookies_not_kept(
    serve: Any, connect: Connect
) -> None:
    async def elsewhere(request: web.BaseRequest) -> web.Response:
        assert "Cookie" not in request.headers
        headers = {"Location": "/other", "Set-Cookie": "a=b"}
        return web.Response(status=302, headers=headers)

    transport = connect(await serve(elsewhere))
    for _ in range(2):
        assert (await transport.request(Request("GET", "/"))).status == 302


async def test_a_server_below_a_path_is_reached(serve: Any, connect: Connect) -> None:
    transport = connect(await serve(echo) + "/k8s/clusters/c-1/")
    assert (await seen(transport, Request("GET", "/version")))["path"] == (
        "/k8s/clusters/c-1/version"
    )


async def test_the_environment_does_not_choose_a_proxy(
    serve: Any, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    await seen(connect(await serve(echo)), Request("GET", "/"))


async def test_an_explicit_proxy_is_used(serve: Any, connect: Connect) -> None:
    transport = connect("http://api.invalid:6443", proxy=await serve(echo))
    got = await seen(transport, Request("GET", "/version"))
    assert dict(got["headers"])["host"] == "api.invalid:6443"


@pytest.mark.parametrize(
    ("server", "proxy"),
    [
        ("127.0.0.1:6443", ""),
        ("ftp://a", ""),
        ("https://", ""),
        ("https://a:b", ""),
        ("https://user:pw@a", ""),
        ("https://a", "socks5://b"),
    ],
)
def test_urls_that_cannot_work_are_refused_at_once(
    server: str, proxy: str, connect: Connect
) -> None:
    with pytest.raises(ConfigurationError, match="must be a URL"):
        connect(server, proxy=proxy)


# Time and failures --------------------------------------------------------------------------------


async def never(request: web.BaseRequest) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def test_a_late_answer_is_not_waited_for(serve: Any, connect: Connect) -> None:
    server = await serve(never)
    with pytest.raises(RequestTimeout) as caught:
        await connect(server).request(Request("GET", "/version", timeout=0.05))
    assert str(caught.value) == f"no answer from {server} within 0.05 s to GET /version"


async def test_a_late_stream_is_not_waited_for(serve: Any, connect: Connect) -> None:
    transport = connect(await serve(never))
    with pytest.raises(RequestTimeout, match="no answer from"):
        async with transport.stream(Request("GET", "/", lane=Lane.WATCH, timeout=0.05)):
            pass


async def test_a_body_that_stops_coming_counts_as_late(serve: Any, connect: Connect) -> None:
    async def stuck(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        return await never(request)

    with pytest.raises(RequestTimeout):
        await connect(await serve(stuck)).request(Request("GET", "/", timeout=0.05))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_nobody_there_is_told_as_such(connect: Connect) -> None:
    server = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionRefused) as caught:
        await connect(server).request(Request("GET", "/"))
    assert str(caught.value) == f"cannot reach {server}: connection refused"


async def test_a_dead_proxy_is_named(connect: Connect) -> None:
    proxy = f"http://user:pw@127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionRefused, match=r"cannot reach proxy http://127\.0\.0\.1:"):
        await connect("http://api.invalid", proxy=proxy).request(Request("GET", "/"))


async def test_an_unknown_name_is_told_as_such(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*args: object, **options: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(NameResolutionError, match=r"cannot resolve 'api\.invalid'"):
        await connect("http://api.invalid").request(Request("GET", "/"))


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH"])
async def test_a_lost_connection_is_an_error_and_nothing_is_sent_twice(
    method: str, serve: Any, connect: Connect
) -> None:
    arrived = []

    async def hang_up(request: web.BaseRequest) -> web.Response:
        arrived.append(request.method)
        if request.path == "/first":
            return web.Response()
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    transport = connect(await serve(hang_up))
    await transport.request(Request("GET", "/first"))  # so that a kept connection is used
    with pytest.raises(TransportError, match="lost the connection to http://127"):
        await transport.request(Request(method, "/", body=b"{}"))
    assert arrived == ["GET", method]


async def test_what_is_not_http_is_an_error(connect: Connect) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TransportError, match=f"http://127.0.0.1:{port}"):
            await connect(f"http://127.0.0.1:{port}").request(Request("GET", "/"))


def test_sockets_notice_a_dead_peer() -> None:
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    with open_socket(address) as opened:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 20
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 50_000


# Streams ------------------------------------------------------------------------------------------


class Stream:
    """A handler that streams what the test gives it, and notices when the client leaves."""

    def __init__(self) -> None:
        self.parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.left = asyncio.Event()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        try:
            await response.prepare(request)
            while (part := await self.parts.get()) is not None:
                await response.write(part)
            assert request.transport is not None
            request.transport.abort()
        finally:
            self.left.set()
        return response


def watch(**options: Any) -> Request:
    return Request("GET", "/", lane=Lane.WATCH, **options)


async def test_chunks_arrive_at_once_however_they_are_cut(serve: Any, connect: Connect) -> None:
    source = Stream()
    transport = connect(await serve(source))
    source.parts.put_nowait(b'{"type":"ADD')
    async with transport.stream(watch(read_timeout=5.0)) as response:
        assert response.status == 200
        assert await anext(response.chunks) == b'{"type":"ADD'
        source.parts.put_nowait(b'ED"}\n')
        assert await anext(response.chunks) == b'ED"}\n'


async def test_leaving_a_stream_closes_its_connection(serve: Any, connect: Connect) -> None:
    source = Stream()
    transport = connect(await serve(source))
    async with transport.stream(watch()):
        assert not source.left.is_set()
    await asyncio.wait_for(source.left.wait(), 5)


async def test_a_cancelled_reader_closes_its_connection(serve: Any, connect: Connect) -> None:
    source = Stream()
    transport = connect(await serve(source))
    opened = asyncio.Event()

    async def read() -> None:
        async with transport.stream(watch()) as response:
            opened.set()
            async for _ in response.chunks:
                pass

    reader = asyncio.ensure_future(read())
    await opened.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await asyncio.wait_for(source.left.wait(), 5)


async def test_a_silent_stream_is_a_dead_stream(serve: Any, connect: Connect) -> None:
    source = Stream()
    transport = connect(await serve(source))
    source.parts.put_nowait(b"x")
    async with transport.stream(watch(read_timeout=0.15)) as response:
        assert await anext(response.chunks) == b"x"
        with pytest.raises(RequestTimeout, match="silent for too long"):
            await anext(response.chunks)


async def test_a_torn_stream_is_an_error_not_an_end(serve: Any, connect: Connect) -> None:
    source = Stream()
    transport = connect(await serve(source))
    source.parts.put_nowait(b"x")
    async with transport.stream(watch()) as response:
        assert await anext(response.chunks) == b"x"
        source.parts.put_nowait(None)
        with pytest.raises(TransportError, match="lost the connection"):
            await anext(response.chunks)


async def test_lanes_do_not_wait_for_each_other(serve: Any, connect: Connect) -> None:
    held = asyncio.Event()

    async def hold(request: web.BaseRequest) -> web.Response:
        if request.path == "/hold":
            await held.wait()
        return web.Response()

    transport = connect(await serve(hold))
    busy = [asyncio.ensure_future(transport.request(Request("GET", "/hold"))) for _ in range(70)]
    lease = Request("PUT", "/lease", lane=Lane.LEASE, timeout=5.0, body=b"{}")
    assert (await transport.request(lease)).status == 200
    async with transport.stream(watch(timeout=5.0)) as response:
        assert response.status == 200
    held.set()
    assert {r.status for r in await asyncio.gather(*busy)} == {200}


async def test_a_closed_transport_sends_nothing_more(serve: Any, connect: Connect) -> None:
    transport = connect(await serve(echo))
    await transport.request(Request("GET", "/"))
    await transport.aclose()
    await transport.aclose()
    with pytest.raises(TransportError, match="closed by us"):
        await transport.request(Request("GET", "/"))


# Credentials --------------------------------------------------------------------------------------


class Guard:
    """A handler that lets only some tokens in."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = set(tokens)
        self.seen: list[str] = []

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.seen.append(token)
        await request.read()
        return web.Response(status=200 if token in self.tokens else 401, body=b"{}")


def counting_plugin(folder: Path) -> ExecPlugin:
    """A plugin that prints t1, t2, … and takes a moment."""
    file = folder / "plugin"
    file.write_text(
        f"#!/bin/sh\necho run >> {folder}/runs\nn=$(wc -l < {folder}/runs)\n"
        'echo "{\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",'
        '\\"kind\\":\\"ExecCredential\\",\\"status\\":{\\"token\\":\\"t$n\\"}}"\n'
    )
    file.chmod(0o755)
    return ExecPlugin(str(file), "client.authentication.k8s.io/v1")


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        (NoCredentials(), None),
        (StaticToken("abc"), "Bearer abc"),
        (BasicAuth("aladdin", "opensesame"), "Basic YWxhZGRpbjpvcGVuc2VzYW1l"),
    ],
)
async def test_credentials_go_with_every_request(
    credentials: object, header: str | None, serve: Any, connect: Connect
) -> None:
    transport = connect(await serve(echo), credentials=credentials)
    got = await seen(transport, Request("GET", "/"))
    assert dict(got["headers"]).get("authorization") == header


async def test_impersonation_goes_with_every_request(serve: Any, connect: Connect) -> None:
    who = Impersonation("jane", groups=("devs", "ops"))
    transport = connect(await serve(echo), impersonation=who)
    headers = (await seen(transport, Request("GET", "/")))["headers"]
    assert [h for h in headers if h[0].startswith("impersonate")] == [
        ["impersonate-user", "jane"],
        ["impersonate-group", "devs"],
        ["impersonate-group", "ops"],
    ]


async def test_a_rotated_token_is_used_within_a_minute(
    serve: Any, connect: Connect, tmp_path: Path, hands: Any
) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    guard = Guard("one", "two")
    transport = connect(await serve(guard), credentials=TokenFile(str(file)))
    await transport.request(Request("GET", "/"))
    file.write_text("two\n")
    hands.seconds += 60
    await transport.request(Request("GET", "/"))
    assert guard.seen == ["one", "two"]


async def test_a_rejected_token_is_replaced_and_the_request_repeated_once(
    serve: Any, connect: Connect, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    guard = Guard("one")
    transport = connect(await serve(guard), credentials=TokenFile(str(file)))
    await transport.request(Request("GET", "/"))
    guard.tokens = {"two"}
    file.write_text("two")
    assert (await transport.request(Request("POST", "/", body=b"{}"))).status == 200
    assert guard.seen == ["one", "one", "two"]


async def test_a_storm_of_rejections_runs_the_plugin_once(
    serve: Any, connect: Connect, tmp_path: Path
) -> None:
    guard = Guard("t1")
    transport = connect(await serve(guard), credentials=counting_plugin(tmp_path))
    await transport.request(Request("GET", "/"))
    guard.tokens = {"t2"}
    answers = await asyncio.gather(*(transport.request(Request("GET", "/")) for _ in range(30)))
    assert {a.status for a in answers} == {200}
    assert (tmp_path / "runs").read_text().count("run") == 2


async def test_a_watch_is_opened_again_with_fresh_credentials(
    serve: Any, connect: Connect, tmp_path: Path
) -> None:
    guard = Guard("t2")
    transport = connect(await serve(guard), credentials=counting_plugin(tmp_path))
    async with transport.stream(watch()) as response:
        assert response.status == 200
    assert guard.seen == ["t1", "t2"]


async def test_a_rejection_that_nothing_helps_against_is_the_answer(
    serve: Any, connect: Connect, tmp_path: Path
) -> None:
    guard = Guard()
    server = await serve(guard)
    static = connect(server, credentials=StaticToken("x"))
    assert (await static.request(Request("GET", "/"))).status == 401
    assert guard.seen == ["x"]
    guard.seen.clear()
    renewing = connect(server, credentials=counting_plugin(tmp_path))
    for _ in range(20):
        assert (await renewing.request(Request("GET", "/"))).status == 401
    # One renewal, one repeated request; after that the pause between renewals holds.
    assert (tmp_path / "runs").read_text().count("run") == 2
    assert len(guard.seen) == 21


async def test_missing_credentials_send_nothing(
    serve: Any, connect: Connect, tmp_path: Path
) -> None:
    guard = Guard()
    transport = connect(await serve(guard), credentials=TokenFile(str(tmp_path / "nope")))
    with pytest.raises(CredentialsError, match="cannot read token file"):
        await transport.request(Request("GET", "/"))
    assert guard.seen == []


async def test_no_failure_shows_the_token(
    serve: Any, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def hang_up(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    source = Stream()
    source.parts.put_nowait(None)
    targets = [
        (await serve(hang_up), ""),
        (await serve(never), ""),
        (f"http://127.0.0.1:{free_port()}", ""),
        ("https://api.invalid", await serve(echo)),
        (await serve(source), ""),
    ]
    texts = []
    with caplog.at_level(logging.DEBUG):
        for server, proxy in targets:
            transport = connect(server, proxy=proxy, credentials=StaticToken(SENTINEL))
            with pytest.raises(TransportError) as caught:
                await transport.request(Request("GET", "/", timeout=0.1))
            error = caught.value
            assert error.__context__ is None or isinstance(
                error.__context__, TimeoutError | asyncio.CancelledError
            )
            texts += [str(error), repr(error), *traceback.format_exception(error)]
            texts += [repr(transport)]
    assert SENTINEL not in "".join(texts) + caplog.text
