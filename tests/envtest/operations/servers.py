"""The two servers that people's commands are tried on, each with a whole `mcm run` beside it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from mcm.clock import SystemClock
from tests.envtest.control_plane import ControlPlane
from tests.envtest.processes import ServerProcess, free_ports
from tests.integration.kubectl import Kubectl

_NAMESPACE = "operations"
_STARTS_WITHIN = 60.0
_MANAGER = [
    "--address=127.0.0.1",
    # Scenarios that break their machines must not keep others from giving up theirs.
    "--machine-safety-unhealthy-fleet-threshold=2",
    "--machine-safety-unhealthy-zone-threshold=2",
    "--resource-exhausted-retry=2s",
]


@dataclass(frozen=True)
class Server:
    """``lacks_controllers``: nobody collects garbage there, nor says that a Node is silent."""

    kubectl: Kubectl
    manager: ServerProcess
    lacks_controllers: bool


@contextmanager
def sandbox(folder: Path, kubectl: str) -> Iterator[Server]:
    """Run `mcm sandbox` and `mcm run` while the context lasts; ``kubectl`` is the binary."""
    kubeconfig = folder / "sandbox-kubeconfig.yaml"
    command = [
        *(sys.executable, "-m", "mcm", "sandbox", f"--kubeconfig={kubeconfig}", "--port=0"),
        *("--heartbeat-interval=2", "--node-grace=10"),
    ]
    process = ServerProcess("mcm sandbox", command, folder / "sandbox.log")
    try:
        _wait(kubeconfig.is_file, process)
        with _manager(folder, kubeconfig, "default") as manager:
            yield Server(Kubectl(kubectl, folder, kubeconfig), manager, lacks_controllers=False)
    finally:
        process.terminate()


@contextmanager
def real(folder: Path, kubectl: str, plane: ControlPlane) -> Iterator[Server]:
    """Run `mcm run` with the simulated cloud in it on a real API server."""
    kubeconfig = folder / "kubeconfig.yaml"
    kubeconfig.write_text(yaml.safe_dump(_kubeconfig(folder, plane)))
    person = Kubectl(kubectl, folder, kubeconfig, _NAMESPACE)
    person("create", "namespace", _NAMESPACE)
    with _manager(folder, kubeconfig, _NAMESPACE, "--simulate-cloud") as manager:
        yield Server(person, manager, lacks_controllers=True)


@contextmanager
def _manager(folder: Path, kubeconfig: Path, namespace: str, *more: str) -> Iterator[ServerProcess]:
    (port,) = free_ports(1)
    command = [
        *(sys.executable, "-m", "mcm", "run", f"--target-kubeconfig={kubeconfig}"),
        *(*_MANAGER, f"--namespace={namespace}", f"--port={port}", *more),
    ]
    process = ServerProcess("mcm run", command, folder / "manager.log")
    try:
        _wait(lambda: "leading: " in process.log.read_text(), process)
        yield process
    finally:
        process.terminate()


def _wait(condition: Callable[[], bool], process: ServerProcess) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + _STARTS_WITHIN
    while not condition():
        assert not process.ended, f"{process.name} ended by itself:\n{process.tail()}"
        assert clock.monotonic() < deadline, f"{process.name} does not start:\n{process.tail()}"
        threading.Event().wait(0.1)


def _kubeconfig(folder: Path, plane: ControlPlane) -> dict[str, object]:
    authority = folder / "ca.crt"
    authority.write_bytes(plane.ca)
    cluster = {"server": plane.url, "certificate-authority": os.fspath(authority)}
    context = {"cluster": "real", "user": "admin", "namespace": _NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": plane.token}}],
        "contexts": [{"name": "real", "context": context}],
        "current-context": "real",
    }
