"""The HTTP endpoints over a real loopback socket."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from mcm.client.errors import ConfigurationError
from mcm.clock import SystemClock
from mcm.endpoints.configuration import configuration_page
from mcm.endpoints.exposition import Exposition
from mcm.endpoints.metrics import metrics_page
from mcm.endpoints.probes import Probe
from mcm.endpoints.routes import Route, app_of
from mcm.endpoints.server import serve
from mcm.http_server import Handler
from tests.metrics.exposition import process_registry


def app(
    problems: Mapping[str, str] | None = None,
    fleet: Exposition | None = None,
) -> Handler:
    found = {} if problems is None else problems
    ready = Probe(problems=lambda: found, checks=lambda: ("control/machines",), bad="Not ready")
    return app_of(
        (
            Route(path="/metrics", page=metrics_page(fleet)),
            Route(path="/configz", page=configuration_page({"port": 1})),
        ),
        probes=(("/healthz", Probe(problems=dict, bad="Unhealthy")), ("/readyz", ready)),
    )


def served(app: Handler, port: int) -> AbstractAsyncContextManager[int]:
    return serve(app, address="127.0.0.1", port=port, clock=SystemClock())


async def fetch(port: int, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}{path}") as response,
    ):
        return response.status, await response.text()


async def test_probes_say_what_is_wrong_by_name() -> None:
    problems: dict[str, str] = {}
    async with served(app(problems), 0) as port:
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
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"--port: 127.0.0.1:{port} is in use"):
            async with served(app(), port):
                raise AssertionError("it cannot have been had")


async def test_the_fleet_is_shown_before_the_registry_and_only_read() -> None:
    registry = CollectorRegistry()
    Gauge("mcm_one", "One.", registry=registry).set(1)

    async def fleet() -> Sequence[bytes]:
        return [b"# HELP a b\n# TYPE a gauge\n", b"a 1.0\n"]

    own = "# HELP mcm_one One.\n# TYPE mcm_one gauge\nmcm_one 1.0\n"
    with process_registry(registry):
        await _is_shown_whole(fleet, own)


async def _is_shown_whole(fleet: Exposition, own: str) -> None:
    async with (
        served(app(fleet=fleet), 0) as port,
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


async def test_a_probe_tells_of_each_check_as_components_of_kubernetes_do() -> None:
    problems: dict[str, str] = {}
    async with served(app(problems), 0) as port:
        assert await fetch(port, "/readyz?verbose") == (200, "[+]control/machines ok\nOK\n")
        assert await fetch(port, "/readyz/control/machines") == (200, "OK")
        problems["control/machines"] = "the first list is not complete"
        whole = "[-]control/machines failed: the first list is not complete\nNot ready\n"
        assert await fetch(port, "/readyz?verbose") == (500, whole)
        failed = (500, "the first list is not complete\n")
        assert await fetch(port, "/readyz/control/machines") == failed
        assert await fetch(port, "/readyz?exclude=control/machines") == (200, "OK")
        excluded = "[+]control/machines excluded: ok\nOK\n"
        assert await fetch(port, "/readyz?verbose&exclude=control/machines") == (200, excluded)
        assert (await fetch(port, "/readyz/nothing"))[0] == 404
        assert (await fetch(port, "/healthz"))[0] == 200, "each probe has checks of its own"
