"""The HTTP endpoints over a real loopback socket."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from mcm import endpoints
from mcm.client.errors import ConfigurationError


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def fetch(port: int, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as response,
    ):
        return response.status, await response.text()


async def test_probes_say_what_is_wrong_by_name() -> None:
    problems: dict[str, str] = {}
    app = endpoints.build_app(alive=dict, ready=lambda: problems, configuration={"port": 1})
    port = free_port()
    async with endpoints.serve(app, address="127.0.0.1", port=port):
        assert await fetch(port, "/healthz") == (200, "OK")
        assert await fetch(port, "/readyz") == (200, "OK")
        problems["control/machines"] = "the server has been silent for 200 s"
        status, text = await fetch(port, "/readyz")
        assert (status, text) == (
            500,
            "Not ready\ncontrol/machines: the server has been silent for 200 s\n",
        )
        assert await fetch(port, "/configz") == (200, '{\n  "port": 1\n}')
        status, text = await fetch(port, "/metrics")
        assert status == 200 and "python_info" in text


async def test_a_port_in_use_is_named_with_its_flag() -> None:
    app = endpoints.build_app(alive=dict, ready=dict, configuration={})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"--port: 127.0.0.1:{port} is in use"):
            async with endpoints.serve(app, address="127.0.0.1", port=port):
                raise AssertionError("it cannot have been had")


async def test_the_fleet_is_shown_before_the_registry_and_only_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = CollectorRegistry()
    monkeypatch.setattr("prometheus_async.aio.web.REGISTRY", registry)
    Gauge("mcm_one", "One.", registry=registry).set(1)

    async def fleet() -> Sequence[bytes]:
        return [b"# HELP a b\n# TYPE a gauge\n", b"a 1.0\n"]

    app = endpoints.build_app(alive=dict, ready=dict, configuration={}, fleet=fleet)
    port = free_port()
    own = "# HELP mcm_one One.\n# TYPE mcm_one gauge\nmcm_one 1.0\n"
    async with (
        endpoints.serve(app, address="127.0.0.1", port=port),
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        whole = "# HELP a b\n# TYPE a gauge\na 1.0\n" + own
        assert await fetch(port, "/metrics") == (200, whole)
        openmetrics = {"Accept": "application/openmetrics-text; version=1.0.0"}
        async with session.get("/metrics", headers=openmetrics) as answer:
            assert await answer.text() == whole + "# EOF\n"
            assert answer.content_type == "application/openmetrics-text"
        async with session.head("/metrics") as answer:
            assert answer.status == 200
            assert answer.headers["Content-Length"] == str(len(whole))
        async with session.post("/metrics", data=b"x") as answer:
            assert answer.status == 405
        async with session.get("/nowhere") as answer:
            assert answer.status == 404
