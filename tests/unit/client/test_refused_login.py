"""What is said of credentials that a server refuses, or that should not be sent to it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from mcm.api.core import NODES
from mcm.client import kubeconfig
from mcm.client.client import Client
from mcm.client.connection import (
    BasicAuth,
    ConnectionSpec,
    Credentials,
    NoCredentials,
    StaticToken,
)
from mcm.client.errors import Unauthorized
from mcm.client.http import HTTPTransport
from mcm.clock import LoopClock
from tests.unit.client.conftest import Serve


async def unauthorized(_: web.BaseRequest) -> web.Response:
    status = {"kind": "Status", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"}
    return web.json_response(status, status=401)


def kubeconfig_of(url: str, user: dict[str, object], folder: Path) -> Path:
    path = folder / "config"
    document = {
        "clusters": [{"name": "prod", "cluster": {"server": url}}],
        "users": [{"name": "ada", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "prod", "user": "ada"}}],
        "current-context": "c",
    }
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("user", "what"),
    [
        ({"token": "s3cret"}, "does not accept the token of {user}: it is wrong, expired or"),
        ({"username": "ada", "password": "s3cret"}, "does not accept name and password of {user}"),
        ({"tokenFile": "/dev/null"}, ""),
        ({}, "wants credentials, and {user} has none"),
    ],
)
async def test_a_refused_login_names_the_cluster_and_the_user(
    serve: Serve, clock: LoopClock, tmp_path: Path, user: dict[str, object], what: str
) -> None:
    url = await serve(unauthorized)
    if "tokenFile" in user:
        token = tmp_path / "token"
        token.write_text("s3cret")
        user, what = {"tokenFile": str(token)}, f"does not accept the token in {token} of {{user}}"
    path = kubeconfig_of(url, user, tmp_path)
    transport = HTTPTransport(kubeconfig.load(str(path), environ={}), clock=clock)
    client = Client(transport, clock=clock)
    try:
        with pytest.raises(Unauthorized) as read:
            await client.get(NODES, "n")
        with pytest.raises(Unauthorized) as watched:
            async with client.watch(NODES, timeout_seconds=1, read_timeout=1):
                raise AssertionError("it must not open")
    finally:
        await transport.aclose()
    text = str(read.value)
    assert str(watched.value) == text
    assert text.startswith(f"{url} (kubeconfig {path}, cluster 'prod') ")
    assert what.format(user=f"kubeconfig {path}, user 'ada'") in text
    assert text.endswith("(the server says: Unauthorized)")
    assert "s3cret" not in text
    assert read.value.reason == "Unauthorized"


async def test_a_login_that_came_from_no_kubeconfig_is_named_as_far_as_it_can_be(
    serve: Serve, connect: Callable[..., HTTPTransport], clock: LoopClock
) -> None:
    url = await serve(unauthorized)
    client = Client(connect(url, credentials=StaticToken("s3cret")), clock=clock)
    with pytest.raises(Unauthorized, match="does not accept the token: it is wrong") as caught:
        await client.get(NODES, "n")
    assert str(caught.value).startswith(f"{url} does not")


@pytest.mark.parametrize(
    ("server", "credentials", "warned"),
    [
        ("http://a:80", StaticToken("s3cret"), True),
        ("http://a:80", BasicAuth("ada", "s3cret"), True),
        ("https://a:443", StaticToken("s3cret"), False),
        ("http://a:80", NoCredentials(), False),
    ],
)
def test_credentials_that_would_go_unencrypted_are_warned_of(
    server: str,
    credentials: Credentials,
    warned: bool,
    clock: LoopClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    spec = ConnectionSpec(server, credentials=credentials, user_entry="kubeconfig /k, user 'ada'")
    with caplog.at_level(logging.WARNING):
        HTTPTransport(spec, clock=clock)
    texts = [record.getMessage() for record in caplog.records]
    assert bool(texts) == warned
    if warned:
        assert len(texts) == 1
        assert "http://a:80 unencrypted" in texts[0]
        assert "of kubeconfig /k, user 'ada'" in texts[0]
        assert "s3cret" not in texts[0]
