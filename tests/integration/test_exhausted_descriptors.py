"""Clients that take every connection they can get do not cost the manager its leases."""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcm.api.core import LEASES
from mcm.api.crds import crd_manifests
from mcm.clock import SystemClock
from mcm.manager import LEASE_NAMES
from mcm.providers.simulated import virtual_machine
from tests.integration.background import BackgroundServer

ROOT = Path(__file__).parents[2]
DESCRIPTORS = 96
CLIENTS = 300
CLOCK = SystemClock()


async def test_the_leases_are_renewed_while_all_connections_are_taken(tmp_path: Path) -> None:
    manifests = [*crd_manifests(), virtual_machine.crd_manifest()]
    with BackgroundServer(tmp_path, manifests) as background:
        port = _free_port()
        async with _manager(background.kubeconfig, port) as log:
            await _renewed(background, 2)
            crowd = await _crowd(port)
            try:
                await _renewed(background, 3)
            finally:
                for client in crowd:
                    client.close()
        lines = log.read_text().splitlines()
        assert any("connections are taken" in line for line in lines), lines
        assert not any("Too many open files" in line for line in lines)
        assert len(lines) < 100


async def _renewed(background: BackgroundServer, times: int) -> None:
    """Return after every lease was renewed so often."""
    async with asyncio.timeout(60):
        for _ in range(times):
            before = _renewals(background)
            while any(before.get(name) == _renewals(background).get(name) for name in LEASE_NAMES):
                await CLOCK.sleep(0.2)


def _renewals(background: BackgroundServer) -> dict[str, object]:
    async def read() -> dict[str, object]:
        found = background.server.objects(LEASES.group, LEASES.plural)
        return {str(o["metadata"]["name"]): o["spec"]["renewTime"] for o in found}  # type: ignore[index]

    return background.do(read())


async def _crowd(port: int) -> list[socket.socket]:
    """Connect as often as possible, and say half of a request."""
    crowd = []
    for _ in range(CLIENTS):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
        crowd.append(client)
        await CLOCK.sleep(0)
    await CLOCK.sleep(0.5)
    for client in crowd:
        try:
            client.send(b"GET /metrics HT")
        except OSError:
            continue
    return crowd


@asynccontextmanager
async def _manager(kubeconfig: Path, port: int) -> AsyncIterator[Path]:
    log = kubeconfig.with_name("mcm.log")
    limit = (DESCRIPTORS, DESCRIPTORS)
    command = ["-m", "mcm", "run", "--target-kubeconfig", str(kubeconfig), "--port", str(port)]
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            cwd=ROOT,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
        )
    try:
        yield log
        assert process.returncode is None, log.read_text()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
