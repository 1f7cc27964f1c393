"""``mcm start`` on a real cluster that has nothing: what is missing is said, and made if asked."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from mcm.cli import main
from mcm.client.client import Client
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from mcm.configuration.configuration import Configuration
from mcm.prerequisites.served_kinds import MACHINE_KINDS, ServedKind, not_served
from tests.envtest.assets import locate
from tests.envtest.control_plane import ControlPlane, run

pytestmark = pytest.mark.envtest

VIRTUAL: Final = ServedKind("simulation.machine.sapcloud.io", "v1alpha1", "virtualmachines")


@pytest.fixture
def empty_plane(control_plane: ControlPlane, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of our own, in which nothing is defined; the session's tells whether there
    are any binaries."""
    plane = ControlPlane(locate(), tmp_path / "empty")
    run(plane.start())
    try:
        yield plane
    finally:
        plane.stop()


def kubeconfig(plane: ControlPlane, folder: Path) -> Path:
    authority = base64.b64encode(plane.ca).decode()
    path = folder / "kubeconfig"
    config = {
        "clusters": [
            {
                "name": "it",
                "cluster": {"server": plane.url, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": "me", "user": {"token": plane.token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
    }
    path.write_text(json.dumps(config))
    return path


async def lacking(plane: ControlPlane) -> tuple[ServedKind, ...]:
    transport = HTTPTransport(plane.spec(), clock=SystemClock())
    try:
        client = Client(transport, clock=SystemClock())
        return await not_served(client, [*MACHINE_KINDS, VIRTUAL])
    finally:
        await transport.aclose()


def test_a_stranger_gets_from_nothing_to_a_manager_in_two_commands(
    empty_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Configuration] = []

    async def launch(configuration: Configuration, **_: object) -> None:
        started.append(configuration)

    monkeypatch.setattr("mcm.launcher.launcher.launch", launch)
    environ = {"TARGET_KUBECONFIG": str(kubeconfig(empty_plane, tmp_path))}

    def start(*words: str) -> Result:
        return CliRunner().invoke(main, ["start", "--namespace=fleet", *words], env=environ)

    first = start()
    assert first.exit_code == 1
    missing = [line.strip() for line in first.output.splitlines() if line.startswith("  ")]
    assert missing == [
        "namespace/fleet",
        "customresourcedefinition/machineclasses.machine.sapcloud.io",
        "customresourcedefinition/machinedeployments.machine.sapcloud.io",
        "customresourcedefinition/machines.machine.sapcloud.io",
        "customresourcedefinition/machinesets.machine.sapcloud.io",
        "customresourcedefinition/virtualmachines.simulation.machine.sapcloud.io",
    ]
    assert "--install" in first.output and empty_plane.url in first.output

    refused = start("--install")  # nobody is at a terminal to agree
    assert refused.exit_code == 1
    assert len(asyncio.run(lacking(empty_plane))) == len(MACHINE_KINDS) + 1
    assert started == []

    done = start("--install", "--yes")
    assert done.exit_code == 0, done.output
    assert all(f"  {name}\n" in done.output for name in missing)
    assert asyncio.run(lacking(empty_plane)) == ()
    assert len(started) == 1

    again = start("--install")
    assert (again.exit_code, again.output) == (0, "")
    assert len(started) == 2
