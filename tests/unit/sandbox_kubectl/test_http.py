"""The HTTPS front on a real loopback socket."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mcm.client.errors import ConfigurationError
from mcm.clock import SystemClock
from mcm.http_server import Limits
from mcm.sandbox.apiserver.front import http
from mcm.sandbox.apiserver.front.http import Certificates, Front, serve_https
from mcm.sandbox.apiserver.limits import LARGEST_BODY
from mcm.sandbox.apiserver.server import ApiServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.load_or_create(tmp_path_factory.mktemp("state"))


@dataclass(frozen=True)
class Running:
    server: ApiServer
    front: Front
    session: aiohttp.ClientSession

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any, Any]:
        """Return status, headers and body (decoded if it is JSON)."""
        async with self.session.request(method, self.front.url + path, **options) as response:
            body = await response.read()
            if response.content_type == "application/json" and body:
                return response.status, response.headers, json.loads(body)
            return response.status, response.headers, body


def client_of(certificates: Certificates) -> aiohttp.ClientSession:
    tls = ssl.create_default_context(cadata=certificates.ca.decode())
    headers = {"Authorization": f"Bearer {certificates.token}"}
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls), headers=headers)


@asynccontextmanager
async def running(certificates: Certificates, **options: Any) -> AsyncIterator[Running]:
    server = ApiServer(clock=SystemClock(), random=random.Random(1))
    async with (
        serve_https(server, certificates=certificates, **options) as front,
        client_of(certificates) as session,
    ):
        yield Running(server, front, session)


def config_map(name: str, size: int = 0) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"x": "y" * size},
    }


@pytest.mark.parametrize(
    "authorization", [None, "Bearer wrong", "Bearer ", "Basic abc", "Bearer \udcff"]
)
async def test_without_the_token_only_health_and_version_answer(
    certificates: Certificates, authorization: str | None
) -> None:
    async with running(certificates) as api:
        headers = {"Authorization": authorization or ""}
        status, _, body = await api.call("GET", "/api/v1/nodes", headers=headers)
        assert status == 401
        assert (body["kind"], body["reason"], body["code"]) == ("Status", "Unauthorized", 401)
        assert (await api.call("GET", "/healthzz", headers=headers))[0] == 401
        for path in ("/healthz", "/livez", "/readyz/ping"):
            assert (await api.call("GET", path, headers=headers))[2] == b"ok"
        assert (await api.call("GET", "/version", headers=headers))[2]["major"] == "1"


async def test_objects_come_and_go_in_json_and_yaml(certificates: Certificates) -> None:
    async with running(certificates) as api:
        status, _, made = await api.call("POST", CONFIG_MAPS, json=config_map("a"))
        assert (status, made["metadata"]["name"]) == (201, "a")
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {x: '1'}\n"
        headers = {"Content-Type": "application/yaml"}
        assert (await api.call("POST", CONFIG_MAPS, data=text, headers=headers))[0] == 201
        _, _, listed = await api.call("GET", CONFIG_MAPS)
        assert [i["metadata"]["name"] for i in listed["items"]] == ["a", "b"]
        assert (await api.call("DELETE", f"{CONFIG_MAPS}/a"))[0] == 200
        assert (await api.call("GET", f"{CONFIG_MAPS}/a"))[0] == 404


async def test_queries_and_escaped_paths_arrive_as_they_were_meant(
    certificates: Certificates,
) -> None:
    async with running(certificates) as api:
        await api.call("POST", CONFIG_MAPS, json=config_map("a"))
        query = {"labelSelector": "!x,y notin (a,b)", "limit": "1"}
        status, _, listed = await api.call("GET", CONFIG_MAPS, params=query)
        assert status == 200 and len(listed["items"]) == 1
        status, _, body = await api.call("GET", f"{CONFIG_MAPS}/%61")
        assert (status, body["metadata"]["name"]) == (200, "a")


async def test_protobuf_bodies_are_understood_or_refused(certificates: Certificates) -> None:
    sent = b'k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x07\n\x05\n\x03cm1\x1a\0"\0'
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    async with running(certificates) as api:
        status, _, body = await api.call("POST", CONFIG_MAPS, data=sent, headers=headers)
        assert (status, body["metadata"]["name"]) == (201, "cm1")
        status, _, body = await api.call("POST", CONFIG_MAPS, data=b"junk", headers=headers)
        assert (status, body["reason"]) == (415, "UnsupportedMediaType")


async def test_a_head_is_a_get_without_the_body(certificates: Certificates) -> None:
    async with running(certificates) as api:
        _, got, _ = await api.call("GET", CONFIG_MAPS)
        status, headers, body = await api.call("HEAD", CONFIG_MAPS)
        assert (status, body) == (200, b"")
        assert headers["Content-Length"] == got["Content-Length"]
        assert (await api.call("HEAD", f"{CONFIG_MAPS}/none"))[0] == 404
        assert (await api.call("HEAD", CONFIG_MAPS, params={"watch": "true"}))[0] == 200
        assert api.server.watch_count == 0


async def test_other_methods_are_not_allowed(certificates: Certificates) -> None:
    async with running(certificates) as api:
        for method in ("OPTIONS", "TRACE"):
            status, _, body = await api.call(method, CONFIG_MAPS)
            assert (status, body["reason"]) == (405, "MethodNotAllowed")


async def test_a_body_too_large_is_refused_with_a_status(certificates: Certificates) -> None:
    async with running(certificates) as api:
        body = b" " * (LARGEST_BODY + 1)
        status, _, answer = await api.call("POST", CONFIG_MAPS, data=BytesIO(body))
        assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")
        fitting = json.dumps(config_map("a", size=1000)).encode().ljust(LARGEST_BODY)
        headers = {"Content-Type": "application/json"}
        status, _, _ = await api.call("POST", CONFIG_MAPS, data=BytesIO(fitting), headers=headers)
        assert status == 201


async def test_big_answers_are_compressed_for_who_takes_it(certificates: Certificates) -> None:
    async with running(certificates) as api:
        await api.call("POST", CONFIG_MAPS, json=config_map("big", size=http.COMPRESS_FROM))
        _, headers, body = await api.call("GET", CONFIG_MAPS)
        assert headers["Content-Encoding"] == "gzip"
        assert body["items"][0]["metadata"]["name"] == "big"
        plain = {"Accept-Encoding": "identity"}
        _, headers, again = await api.call("GET", CONFIG_MAPS, headers=plain)
        assert "Content-Encoding" not in headers and again == body
        _, headers, _ = await api.call("GET", "/api/v1/namespaces")
        assert "Content-Encoding" not in headers


async def test_a_watch_streams_and_ends_when_its_client_leaves(certificates: Certificates) -> None:
    async with running(certificates) as api:
        url = f"{api.front.url}{CONFIG_MAPS}?watch=true"
        async with api.session.get(url) as response:
            assert (response.status, response.headers["Transfer-Encoding"]) == (200, "chunked")
            await api.call("POST", CONFIG_MAPS, json=config_map("a"))
            event = json.loads(await response.content.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
            assert api.server.watch_count == 1
            response.close()
        async with asyncio.timeout(5):
            while api.server.watch_count:
                await SystemClock().sleep(0.01)


async def test_watches_of_one_kind_of_client_leave_room_for_all_others(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the manager loses its lease once enough people watch."""
    monkeypatch.setattr(http, "LIMITS", Limits(connections=64))
    path = f"{CONFIG_MAPS}?watch=true"
    async with running(certificates) as api, AsyncExitStack() as open_watches:

        async def watch(agent: str) -> tuple[int, str | None]:
            headers = {"User-Agent": agent}
            opening = api.session.get(api.front.url + path, headers=headers)
            response = await open_watches.enter_async_context(opening)
            if response.status != 200:
                assert (await response.json())["reason"] == "TooManyRequests"
            return response.status, response.headers.get("Retry-After")

        answers = [await watch("kubectl") for _ in range(60)]
        assert answers == [(200, None)] * 48 + [(429, "1")] * 12
        assert [await watch("manager") for _ in range(12)] == [(200, None)] * 12
        assert (await api.call("GET", CONFIG_MAPS))[0] == 200
        await open_watches.aclose()
        async with asyncio.timeout(10):
            while (await watch("kubectl"))[0] != 200:
                await SystemClock().sleep(0.05)


async def test_a_shutdown_ends_watches_at_once(certificates: Certificates) -> None:
    loop = asyncio.get_running_loop()
    server = ApiServer(clock=SystemClock(), random=random.Random(1))
    async with client_of(certificates) as session:
        async with serve_https(server, certificates=certificates) as front:
            response = await session.get(f"{front.url}{CONFIG_MAPS}?watch=true")
            assert server.watch_count == 1
            began = loop.time()
        assert loop.time() - began < http.SHUTDOWN_SECONDS
        assert server.watch_count == 0
        assert await response.content.read() == b""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.com", ""])
async def test_it_listens_on_loopback_addresses_only(certificates: Certificates, host: str) -> None:
    with pytest.raises(ConfigurationError, match="loopback"):
        async with running(certificates, host=host):
            pass


async def test_a_port_in_use_is_named_with_the_remedy(certificates: Certificates) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        expected = rf"cannot listen on 127\.0\.0\.1:{port}: the port is in use; .*--port"
        with pytest.raises(ConfigurationError, match=expected):
            async with running(certificates, port=port):
                pass


async def test_a_port_asked_for_is_used_and_free_again_after(certificates: Certificates) -> None:
    async with running(certificates) as first:
        port = int(first.front.url.rpartition(":")[2])
    async with running(certificates, port=port) as second:
        assert second.front.url == f"https://127.0.0.1:{port}"
        assert (await second.call("GET", "/api/v1/namespaces"))[0] == 200


def test_a_front_does_not_show_its_token(tmp_path: Path) -> None:
    assert "hush" not in repr(Front("https://127.0.0.1:1", b"", "hush"))


async def test_a_connection_that_was_still_shaking_hands_at_the_end_is_closed(
    certificates: Certificates,
) -> None:
    server = ApiServer(clock=SystemClock(), random=random.Random(1))
    async with serve_https(server, certificates=certificates) as front:
        port = int(front.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await SystemClock().sleep(0.05)  # so that it is accepted
    async with asyncio.timeout(5):
        with suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/v1/pods?labelSelector=" + "a" * 70_000, {}, 414),
        ("/api/v1/pods", {"X-Long": "a" * 70_000}, 431),
    ],
)
async def test_what_is_too_long_to_be_read_is_refused_with_a_status(
    certificates: Certificates, path: str, headers: dict[str, str], status: int
) -> None:
    async with running(certificates) as sandbox:
        answered, _, body = await sandbox.call("GET", path, headers=headers)
        assert answered == status
        assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", status)
        assert "could not be read" in body["message"]
        answered, _, _ = await sandbox.call("GET", "/api/v1/pods?labelSelector=" + "a" * 60)
        assert answered == 200


async def test_a_body_that_does_not_come_is_refused_with_a_status(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LIMITS", Limits(body=0.1))

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with running(certificates) as sandbox:
        answered, _, body = await sandbox.call("POST", CONFIG_MAPS, data=never())
        assert answered == 408
        assert (body["kind"], body["reason"]) == ("Status", "Timeout")


async def test_nonsense_on_the_line_costs_one_line_in_the_log(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(certificates) as sandbox:
        port = int(sandbox.front.url.rpartition(":")[2])
        for _ in range(50):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"no TLS at all\r\n\r\n")
            async with asyncio.timeout(10):
                await reader.read()
            writer.close()
        tls = ssl.create_default_context(cadata=certificates.ca.decode())
        for _ in range(50):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            writer.write(b"no HTTP at all\r\n\r\n")
            async with asyncio.timeout(10):
                assert b'"kind":"Status"' in await reader.read()
            writer.close()
    assert len(caplog.records) <= 3
    assert all(record.exc_info is None for record in caplog.records)
