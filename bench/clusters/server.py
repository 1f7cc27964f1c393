"""Which API server is measured at: ``real``, ``sandbox``, or the one of a kubeconfig."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from mcm.client import kubeconfig
from mcm.client.connection import ConnectionSpec
from mcm.client.errors import ConfigurationError, TransportError
from mcm.client.http import HTTPTransport
from mcm.client.transport import Request
from mcm.clock import SystemClock
from mcm.sandbox.apiserver.front.kubeconfig import write_kubeconfig
from tests.envtest import assets
from tests.envtest.control_plane import MANAGER, ControlPlane, StartFailed, token_of
from tests.envtest.processes import ServerProcess

AUTO, REAL, SANDBOX, GIVEN = "auto", "real", "sandbox", "given"
_READY_WITHIN = 180.0
"""Seconds: a machine that is busy with other things needs most of a minute."""
_FOREVER = 1_000_000
"""Seconds without a heartbeat after which the sandbox doubts a Node: the bench's have none."""

_APISERVER_FLAGS: Final = (
    "--etcd-compaction-interval=5m",
    # Nobody is here to take the taint off again that it puts on each new Node.
    "--disable-admission-plugins=TaintNodesByCondition",
)
_ETCD_FLAGS: Final = ("--quota-backend-bytes=8589934592",)


class ServerUnavailable(Exception):
    """The server asked for cannot be had; the text names the flag and the remedy."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """``kubeconfig`` is what a manager is given; ``admin`` is how the bench itself reaches it.
    ``ours``: nobody else works there, and it is thrown away afterwards; ``pids`` are then its
    processes."""

    kind: str
    kubeconfig: Path
    admin: ConnectionSpec
    version: str
    ours: bool
    pids: tuple[int, ...] = ()


def chosen(server: str) -> str:
    """Resolve ``auto``: the real server if its binaries are here, else the sandbox; and the path of
    a kubeconfig."""
    if server in (REAL, SANDBOX):
        return server
    if server != AUTO:
        return str(Path(server).expanduser().absolute())
    try:
        assets.locate()
    except assets.AssetsMissing as error:
        print(f"measuring at the sandbox: {error}", file=sys.stderr)
        return SANDBOX
    return REAL


@asynccontextmanager
async def running(server: str, folder: Path) -> AsyncIterator[Cluster]:
    """Have the server that ``--server`` names for as long as the context lasts.

    ``folder`` exists and gets its data and logs. Raises :class:`ServerUnavailable`.
    """
    if server == REAL:
        async with _real(folder) as cluster:
            yield cluster
    elif server == SANDBOX:
        async with _sandbox(folder) as cluster:
            yield cluster
    else:
        yield await _given(Path(server))


@asynccontextmanager
async def _real(folder: Path) -> AsyncIterator[Cluster]:
    """A kube-apiserver and an etcd. The manager is a service account there, with the rights to do
    anything, so that the server's priorities and fairness treat it as they would any manager."""
    try:
        binaries = assets.locate()
    except assets.AssetsMissing as error:
        raise ServerUnavailable(f"--server real: {error}") from error
    plane = ControlPlane(
        binaries,
        folder,
        apiserver_flags=_APISERVER_FLAGS,
        etcd_flags=_ETCD_FLAGS,
        groups={MANAGER: "system:serviceaccounts"},
        ready_within=_READY_WITHIN,
    )
    try:
        await plane.start()
        path = folder / "kubeconfig.yaml"
        write_kubeconfig(path, _Login(plane.url, plane.ca, token_of(MANAGER)))
        await _grant_everything(plane.spec(), MANAGER)
        version = await _version(plane.spec())
        yield Cluster(REAL, path, plane.spec(), version, ours=True, pids=plane.pids)
    except StartFailed as error:
        raise ServerUnavailable(f"--server real: {error}") from error
    finally:
        plane.stop()


@asynccontextmanager
async def _sandbox(folder: Path) -> AsyncIterator[Cluster]:
    """``mcm sandbox`` in a process of its own."""
    path = folder / "kubeconfig.yaml"
    options = [f"--kubeconfig={path}", "--port=0", f"--node-grace={_FOREVER}"]
    process = ServerProcess(
        "sandbox", [sys.executable, "-m", "mcm", "sandbox", *options], folder / "sandbox.log"
    )
    try:
        await _until(path.exists, process)
        spec = kubeconfig.load(str(path))
        await _until_answers(spec, process)
        version = await _version(spec)
        yield Cluster(SANDBOX, path, spec, version, ours=True, pids=(process.pid,))
    finally:
        process.terminate()


async def _given(path: Path) -> Cluster:
    try:
        spec = kubeconfig.load(str(path))
        version = await _version(spec)
    except (ConfigurationError, TransportError) as error:
        raise ServerUnavailable(
            f"--server {path}: neither real nor sandbox, nor a kubeconfig that works: {error}"
        ) from error
    return Cluster(GIVEN, path, spec, version, ours=False)


@dataclass(frozen=True, slots=True)
class _Login:
    url: str
    ca: bytes
    token: str = field(repr=False)


async def _grant_everything(spec: ConnectionSpec, user: str) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "measured-manager"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    headers = {"content-type": "application/json"}
    await _ask(spec, Request("POST", path, headers=headers, body=orjson.dumps(binding)))


async def _version(spec: ConnectionSpec) -> str:
    found = orjson.loads(await _ask(spec, Request("GET", "/version", timeout=10.0)))
    return str(found.get("gitVersion", ""))


async def _ask(spec: ConnectionSpec, request: Request) -> bytes:
    transport = HTTPTransport(spec, clock=SystemClock())
    try:
        answer = await transport.request(request)
    finally:
        await transport.aclose()
    if not 200 <= answer.status < 300:
        raise ServerUnavailable(f"{request.method} {request.path}: {answer.status} {answer.body!r}")
    return answer.body


async def _until(condition: Callable[[], bool], process: ServerProcess) -> None:
    async def holds() -> bool:
        return condition()

    await _until_async(holds, process)


async def _until_answers(spec: ConnectionSpec, process: ServerProcess) -> None:
    async def answers() -> bool:
        try:
            await _ask(spec, Request("GET", "/readyz", timeout=5.0))
        except (TransportError, ServerUnavailable):
            return False
        return True

    await _until_async(answers, process)


async def _until_async(condition: Callable[[], Awaitable[bool]], process: ServerProcess) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + _READY_WITHIN
    while not await condition():
        if process.ended or clock.monotonic() > deadline:
            raise ServerUnavailable(f"the {process.name} does not come up:\n{process.tail()}")
        await asyncio.sleep(0.05)
