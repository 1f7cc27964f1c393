"""The commands of docs/migration.md, run one after the other on a fleet that the original left."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from mcm.api.codec import decode_object
from mcm.api.crds import crd_manifests
from mcm.api.machine import MACHINES
from mcm.api.timestamps import micro_time
from mcm.clock import SystemClock
from mcm.manager import LEASE_NAMES
from mcm.providers.simulated import virtual_machine
from mcm.sandbox.cluster import create_all
from tests.envtest.processes import free_ports
from tests.integration.background import BackgroundServer
from tests.integration.replica import Replica
from tests.integration.test_takeover import until
from tests.simulation.takeover import going_back
from tests.simulation.takeover.as_left import NAMESPACE, LeftFleet, rolling
from tests.unit.machine.takeover.go_original import misread

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "migration.md"
_BLOCK = re.compile(r"(?:<!-- held by (?P<test>\S+) -->\n)?```sh\n(?P<text>.*?)```", re.DOTALL)
pytestmark = pytest.mark.timeout(180)

GO = "go-host-6d8f7"


@dataclass(frozen=True)
class Block:
    """Commands of the page. ``test`` holds them where this test cannot run them."""

    text: str
    test: str


def blocks() -> Iterator[Block]:
    for found in _BLOCK.finditer(PAGE.read_text()):
        yield Block(found["text"], found["test"] or "")


def deployment(name: str, *command: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": f"registry/{name}:v1", "command": list(command)}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def lease(name: str) -> dict[str, Any]:
    """As the original holds it, which ended a while ago."""
    spec = {"holderIdentity": GO, "leaseDurationSeconds": 1, "leaseTransitions": 3}
    times = {key: micro_time(SystemClock().now()) for key in ("acquireTime", "renewTime")}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {**spec, **times},
    }


class Hands:
    """Types the page's commands; ``kubectl`` and ``mcm`` are found as a user finds them."""

    def __init__(self, folder: Path, kubeconfig: Path, kubectl: str) -> None:
        programs = folder / "bin"
        programs.mkdir()
        for name, command in {"mcm": f"{sys.executable} -m mcm", "kubectl": kubectl}.items():
            script = programs / name
            script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            script.chmod(0o755)
        self._folder = folder
        self._environment = {
            **{k: v for k, v in os.environ.items() if "KUBECONFIG" not in k},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "NAMESPACE": NAMESPACE,
            "CONTROL": str(kubeconfig),
            "TARGET": str(kubeconfig),
            "PYTHONPATH": str(ROOT),
        }

    def type(self, text: str) -> str:
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", text],
            cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=90,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def test_each_command_is_run_or_names_the_test_that_holds_it() -> None:
    found = list(blocks())
    assert len(found) >= 7
    for block in found:
        if block.test:
            path, _, name = block.test.partition("::")
            assert (ROOT / path).is_file(), block.test
            assert not name or f"def {name}(" in (ROOT / path).read_text(), block.test
        for line in block.text.splitlines():
            assert shlex.split(line)[0] in {"kubectl", "mcm", "helm"}


def test_a_fleet_of_the_original_s_changes_hands_and_back(
    tmp_path: Path, kubectl_binary: str
) -> None:
    left = LeftFleet(replicas=3, strategy=rolling(1, 1), surge=1)
    left.complete(left.add_set("a", 3))
    uids = {m.uid for m in left.machines}
    kinds = [*crd_manifests(), virtual_machine.crd_manifest()]
    look, keep, crds, stop, check, back = _groups()
    with BackgroundServer(tmp_path, kinds) as background:

        async def put() -> None:
            left.put(background.server)
            flags = ["./machine-controller-manager", "--concurrent-syncs=30", "--v=3"]
            await create_all(
                background.server,
                [
                    deployment("machine-controller-manager", *flags),
                    deployment("mcm", "mcm", "run"),
                    *(lease(name) for name in LEASE_NAMES),
                ],
            )

        background.do(put())
        hands = Hands(tmp_path, background.kubeconfig, kubectl_binary)
        hands.type(look)
        told = hands.type(keep)
        assert "0 problems" in told
        assert "mcm run --concurrent-syncs=30 --v=3" in told
        assert "Deployment machine-controller-manager: runs machine-controller-manager" in told
        hands.type(crds)
        hands.type(stop)
        (port,) = free_ports(1)
        with Replica(tmp_path, background.kubeconfig, port=port, namespace=NAMESPACE) as ours:
            until(background, lambda: ours.leads)
            seen = hands.type(check)
            assert GO not in seen
            assert "a manager of ours" in seen
            assert all(m.name in seen for m in left.machines)
            ours.stop()
        hands.type(back)
        assert {m["metadata"]["uid"] for m in objects(background, "machines")} == uids
        held = [found["spec"].get("holderIdentity") or "" for found in leases(background)]
        assert held == ["", ""]
        assert replicas(background) == {"machine-controller-manager": 1, "mcm": 0}
        assert what_it_would_misread(background) == []


def _groups() -> list[str]:
    return [block.text for block in blocks() if not block.test]


def objects(background: BackgroundServer, plural: str) -> list[Any]:
    return cast("list[Any]", background.server.objects("machine.sapcloud.io", plural))


def leases(background: BackgroundServer) -> list[Any]:
    return cast("list[Any]", background.server.objects("coordination.k8s.io", "leases"))


def replicas(background: BackgroundServer) -> dict[str, int]:
    found = cast("list[Any]", background.server.objects("apps", "deployments"))
    return {d["metadata"]["name"]: d["spec"]["replicas"] for d in found}


def what_it_would_misread(background: BackgroundServer) -> list[str]:
    """Return what of ours the original could not go on from."""
    (deployment_,) = objects(background, "machinedeployments")
    sets = objects(background, "machinesets")
    by_uid = {s["metadata"]["uid"]: s for s in sets}
    found = going_back.misread_deployment(deployment_)
    found += [text for s in sets for text in going_back.misread_set(s, deployment_)]
    for machine in objects(background, "machines"):
        found += going_back.misread_machine(machine, by_uid)
        found += misread(decode_object(MACHINES, orjson.dumps(machine)))
    return found + going_back.next_acts(deployment_, sets)
