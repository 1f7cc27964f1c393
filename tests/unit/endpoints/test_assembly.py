"""What one process serves, on which ports, over TLS or not, and to whom."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import trustme
from prometheus_client import CollectorRegistry

from mcm.client.errors import ConfigurationError
from mcm.client.verbs import Carrier
from mcm.clock import SystemClock
from mcm.endpoints import Probe, Shown, routes, serving
from mcm.logs import Verbosity
from mcm.options import Endpoints, Profiling
from mcm.profiling.stalls import Stalls

CLOCK = SystemClock()
PROFILED = Profiling(profiling=True, contention_profiling=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(autouse=True)
def log_level_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level
    yield
    root.setLevel(before)


async def no_fleet() -> Sequence[bytes]:
    return ()


def no_reviewer() -> Carrier:
    raise AssertionError("no token is reviewed here")


@asynccontextmanager
async def process(
    options: Endpoints, profiling: Profiling = PROFILED
) -> AsyncIterator[aiohttp.ClientSession]:
    """Serve, and yield what asks on the port of the metrics."""
    registry = CollectorRegistry()
    shown = Shown(
        alive=Probe(problems=dict, bad="Unhealthy"),
        ready=Probe(problems=dict, bad="Not ready"),
        fleet=no_fleet,
        configuration={"port": 1},
        verbosity=Verbosity(0),
        stalls=Stalls(clock=CLOCK, registry=registry),
    )
    serve = serving(shown, options, profiling, reviewer=no_reviewer, registry=registry, clock=CLOCK)
    async with serve as url, aiohttp.ClientSession(url.removesuffix("/metrics")) as session:
        yield session


async def status(session: aiohttp.ClientSession, path: str, method: str = "GET") -> int:
    async with session.request(method, path) as answer:
        return answer.status


async def text(session: aiohttp.ClientSession, path: str) -> str:
    async with session.get(path) as answer:
        return await answer.text()


def local(**options: object) -> Endpoints:
    return Endpoints(address="127.0.0.1", port=free_port(), **options)  # type: ignore[arg-type]


async def test_probes_and_the_rest_have_a_port_each_if_that_is_asked_for() -> None:
    options = local(metrics_port=free_port())
    async with (
        process(options) as metrics,
        aiohttp.ClientSession(f"http://127.0.0.1:{options.port}") as probes,
    ):
        for path, there in {
            "/healthz": 200,
            "/readyz": 200,
            "/metrics": 404,
            "/configz": 404,
        }.items():
            assert await status(probes, path) == there
        for path, there in {"/healthz": 404, "/metrics": 200, "/configz": 200}.items():
            assert await status(metrics, path) == there


async def test_metrics_speak_tls_and_follow_their_files_while_probes_do_not(
    tmp_path: Path,
) -> None:
    authority = trustme.CA()
    pair = authority.issue_cert("127.0.0.1")
    (tmp_path / "tls.crt").write_bytes(pair.cert_chain_pems[0].bytes())
    (tmp_path / "tls.key").write_bytes(pair.private_key_pem.bytes())
    options = local(metrics_port=free_port(), metrics_tls_cert_dir=str(tmp_path))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with (
        process(options) as metrics,
        aiohttp.ClientSession(f"http://127.0.0.1:{options.port}") as probes,
    ):
        async with metrics.get("/metrics", ssl=trusting) as answer:
            assert answer.status == 200
        assert await status(probes, "/healthz") == 200
        with pytest.raises(aiohttp.ClientSSLError):
            await metrics.get("/metrics")  # nobody it knows has signed this
        # A half-written certificate changes nothing; webhook tests hold the rest of rotation.
        (tmp_path / "tls.crt").write_bytes(b"-----BEGIN CERT")
        async with metrics.get("/metrics", ssl=trusting) as answer:
            assert answer.status == 200


async def test_a_certificate_that_cannot_be_had_is_named_with_its_flag(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--metrics-tls-cert-dir: cannot read .*tls.crt"):
        async with process(local(metrics_tls_cert_dir=str(tmp_path))):
            raise AssertionError("it has no certificate")


async def test_a_port_that_is_taken_is_named_with_its_flag() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        options = local(metrics_port=taken.getsockname()[1])
        with pytest.raises(ConfigurationError, match=r"^--metrics-port: .* is in use"):
            async with process(options):
                raise AssertionError("the port is taken")


async def test_the_log_level_is_shown_and_changed_and_nothing_else_is() -> None:
    async with process(local(), Profiling()) as session:

        async def put(body: bytes) -> tuple[int, str]:
            async with session.put("/debug/flags/v", data=body) as answer:
                return answer.status, await answer.text()

        async with session.get("/debug/flags/v") as answer:
            assert await answer.text() == "0\n"
        assert await put(b"4\n") == (200, "successfully set klog.logging.verbosity to 4\n")
        assert logging.getLogger().level == logging.DEBUG
        for garbage in (b"", b"-1", b"four", b"4 4", b"1000", b"\xff", b"4" * 10_000, "٤".encode()):
            assert (await put(garbage))[0] == 400
        async with session.get("/debug/flags/v") as answer:
            assert await answer.text() == "4\n"
        assert await status(session, "/debug/flags/v", "DELETE") == 405
        assert await status(session, "/debug/pprof/profile") == 404, "nobody asked for profiling"
        await put(b"0")
        assert logging.getLogger().level == logging.INFO


async def test_strangers_neither_see_the_inside_nor_change_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "_LOOPBACK", ("192.0.2.1",))
    async with process(local()) as session:
        for path in ("/debug/tasks", "/debug/pprof/profile", "/debug/flags/v"):
            assert await status(session, path) == 403
        assert await status(session, "/debug/flags/v", "PUT") == 403
        assert await status(session, "/metrics") == 200


async def test_one_profile_is_taken_at_a_time_and_ends_with_who_asked() -> None:
    async with process(local()) as session:
        patient = asyncio.create_task(status(session, "/debug/pprof/profile?seconds=60"))
        async with asyncio.timeout(20):
            while "at the same place: profile" not in await text(session, "/debug/tasks"):
                await CLOCK.sleep(0.01)
        crowd = [status(session, f"/debug/pprof/profile?seconds={n}") for n in range(1, 20)]
        assert set(await asyncio.gather(*crowd)) == {429}
        assert await status(session, "/healthz") == 200
        assert await status(session, "/debug/tasks") == 200
        patient.cancel()  # and its connection is closed
        async with asyncio.timeout(20):
            while await status(session, "/debug/pprof/heap?seconds=0.01") == 429:
                await CLOCK.sleep(0.01)


@pytest.mark.parametrize("seconds", ["0", "-1", "61", "inf", "nan", "ten", ""])
async def test_a_profile_of_no_sensible_length_is_refused(seconds: str) -> None:
    async with process(local()) as session:
        assert await status(session, f"/debug/pprof/profile?seconds={seconds}") == 400


async def test_every_page_of_profiling_answers() -> None:
    async with process(local()) as session:
        for path in ("/debug/pprof/", "/debug/tasks", "/debug/threads"):
            assert await status(session, path) == 200
            assert await status(session, path, "HEAD") == 405, "a HEAD would cost as much"
        for path in ("profile?seconds=0.05", "heap?seconds=0.05", "goroutine", "block"):
            async with session.get(f"/debug/pprof/{path}") as answer:
                assert answer.status == 200
                assert gzip.decompress(await answer.read())
        async with session.get("/debug/pprof/goroutine?format=collapsed") as answer:
            assert "test_every_page_of_profiling_answers" in await answer.text()
