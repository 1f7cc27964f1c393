from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mcm.client.connection import TLSSpec
from mcm.client.credentials import Certificate, Credential
from mcm.client.errors import TLSError, TransportError
from mcm.client.http import HTTPTransport
from mcm.client.transport import Lane, Request

Connect = Callable[..., HTTPTransport]
ServerTLS = Callable[..., ssl.SSLContext]

GET = Request("GET", "/", timeout=5.0)


@pytest.fixture
def server_tls(authority: Any, tmp_path: Path) -> ServerTLS:
    """Make a server's context; ``clients`` is the authority whose certificates it demands."""

    def make(*names: str, expired: bool = False, clients: Any = None) -> ssl.SSLContext:
        cert, key = authority.issue(*(names or ("127.0.0.1",)), expired=expired)
        file = tmp_path / "server.pem"
        file.write_bytes(cert + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=clients.pem.decode())
        return context

    return make


async def who(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with the name in the client's certificate; ``/watch`` stays open after that."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    names = [v for group in certificate.get("subject", ()) for k, v in group if k == "commonName"]
    body = ",".join(names).encode()
    if request.path != "/watch":
        return web.Response(body=body)
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(body)
    await asyncio.Event().wait()
    return response


async def test_a_server_of_the_given_authority_is_trusted(
    serve: Any, connect: Connect, server_tls: ServerTLS, authority: Any
) -> None:
    transport = connect(await serve(who, server_tls()), tls=TLSSpec(ca_data=authority.pem))
    assert (await transport.request(GET)).status == 200


async def test_a_server_of_another_authority_is_not(
    serve: Any, connect: Connect, server_tls: ServerTLS, other_authority: Any
) -> None:
    transport = connect(await serve(who, server_tls()), tls=TLSSpec(ca_data=other_authority.pem))
    with pytest.raises(TLSError, match="signed by an unknown authority; check the cluster's"):
        await transport.request(GET)


async def test_a_certificate_for_another_name_is_refused_unless_that_name_is_expected(
    serve: Any, connect: Connect, server_tls: ServerTLS, authority: Any
) -> None:
    server, tls = await serve(who, server_tls("api.internal")), TLSSpec(ca_data=authority.pem)
    with pytest.raises(TLSError, match=r"made out to another name .*set tls-server-name"):
        await connect(server, tls=tls).request(GET)
    named = connect(server, tls=tls, tls_server_name="api.internal")
    assert (await named.request(GET)).status == 200


async def test_an_expired_certificate_is_told_as_such(
    serve: Any, connect: Connect, server_tls: ServerTLS, authority: Any
) -> None:
    server = await serve(who, server_tls(expired=True))
    with pytest.raises(TLSError, match="is expired; renew it"):
        await connect(server, tls=TLSSpec(ca_data=authority.pem)).request(GET)


async def test_verification_can_be_switched_off(
    serve: Any, connect: Connect, server_tls: ServerTLS
) -> None:
    transport = connect(await serve(who, server_tls("x")), tls=TLSSpec(insecure=True))
    assert (await transport.request(GET)).status == 200


async def test_a_server_without_tls_is_told_as_such(serve: Any, connect: Connect) -> None:
    server = (await serve(who)).replace("http:", "https:")
    with pytest.raises(TLSError, match="does not speak TLS there"):
        await connect(server).request(GET)


async def test_a_client_certificate_identifies_us(
    serve: Any, connect: Connect, server_tls: ServerTLS, authority: Any
) -> None:
    cert, key = authority.issue(common_name="mcm")
    tls = TLSSpec(ca_data=authority.pem, cert_data=cert, key_data=key)
    transport = connect(await serve(who, server_tls(clients=authority)), tls=tls)
    assert (await transport.request(GET)).body == b"mcm"


async def test_a_client_certificate_that_is_missing_or_unknown_is_told_as_such(
    serve: Any, connect: Connect, server_tls: ServerTLS, authority: Any, other_authority: Any
) -> None:
    server = await serve(who, server_tls(clients=authority))
    cert, key = other_authority.issue(common_name="mallory")
    anonymous = TLSSpec(ca_data=authority.pem)
    stranger = TLSSpec(ca_data=authority.pem, cert_data=cert, key_data=key)
    for tls in (anonymous, stranger):
        # In TLS 1.3 the refusal comes after the handshake, and may be lost with the connection.
        with pytest.raises(TransportError, match=r"refused our client certificate|lost the conn"):
            await connect(server, tls=tls).request(GET)


async def test_a_corrected_authority_file_heals_the_connection(
    serve: Any,
    connect: Connect,
    server_tls: ServerTLS,
    authority: Any,
    other_authority: Any,
    tmp_path: Path,
    hands: Any,
) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(other_authority.pem)
    transport = connect(await serve(who, server_tls()), tls=TLSSpec(ca_file=str(file)))
    with pytest.raises(TLSError):
        await transport.request(GET)
    file.write_bytes(authority.pem)
    hands.seconds += 5
    assert (await transport.request(GET)).status == 200


class Rotating:
    """A provider whose certificate the test changes."""

    def __init__(self, certificate: Certificate) -> None:
        self.credential = Credential(0, certificate=certificate)

    def rotate(self, certificate: Certificate) -> None:
        self.credential = Credential(self.credential.generation + 1, certificate=certificate)

    async def current(self) -> Credential:
        return self.credential

    async def renewed(self, rejected: Credential) -> Credential | None:
        return None


class Held:
    """Answers as :func:`who`, those on ``path`` not before they may go."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.arrived, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == self.path:
            self.arrived.set()
            await self.go.wait()
        return await who(request)


async def test_a_new_client_certificate_gets_new_connections_and_watches_must_come_again(
    serve: Any, connect: Connect, server_tls: ServerTLS, authority: Any
) -> None:
    provider = Rotating(Certificate(*authority.issue(common_name="old")))
    server = await serve(who, server_tls(clients=authority))
    transport = connect(server, provider=provider, tls=TLSSpec(ca_data=authority.pem))
    async with transport.stream(Request("GET", "/watch", lane=Lane.WATCH)) as response:
        assert await anext(response.chunks) == b"old"
        assert (await transport.request(GET)).body == b"old"
        provider.rotate(Certificate(*authority.issue(common_name="new")))
        assert (await transport.request(GET)).body == b"new"
        with pytest.raises(TransportError):
            await anext(response.chunks)
    assert transport.generations_open == 1
    async with transport.stream(Request("GET", "/watch", lane=Lane.WATCH)) as response:
        assert await anext(response.chunks) == b"new"


async def test_a_watch_that_was_being_opened_is_cut_too(
    serve: Any, connect: Connect, server_tls: ServerTLS, authority: Any
) -> None:
    held = Held("/watch")
    provider = Rotating(Certificate(*authority.issue(common_name="old")))
    server = await serve(held, server_tls(clients=authority))
    transport = connect(server, provider=provider, tls=TLSSpec(ca_data=authority.pem))

    async def watch() -> None:
        async with transport.stream(Request("GET", "/watch", lane=Lane.WATCH)) as response:
            async for _ in response.chunks:
                pass

    watching = asyncio.create_task(watch())
    await held.arrived.wait()
    provider.rotate(Certificate(*authority.issue(common_name="new")))
    assert (await transport.request(GET)).body == b"new"
    held.go.set()
    with pytest.raises(TransportError):
        await watching


async def test_a_request_on_its_way_may_end_under_the_old_certificate(
    serve: Any, connect: Connect, server_tls: ServerTLS, authority: Any
) -> None:
    held = Held("/slow")
    provider = Rotating(Certificate(*authority.issue(common_name="old")))
    server = await serve(held, server_tls(clients=authority))
    transport = connect(server, provider=provider, tls=TLSSpec(ca_data=authority.pem))
    write = asyncio.create_task(transport.request(Request("POST", "/slow", timeout=5.0)))
    await held.arrived.wait()
    provider.rotate(Certificate(*authority.issue(common_name="new")))
    assert (await transport.request(GET)).body == b"new"
    assert transport.generations_open == 2
    held.go.set()
    assert (await write).body == b"old"
    assert transport.generations_open == 1
