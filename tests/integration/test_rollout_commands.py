"""``mcm rollout`` as a process of its own, over HTTPS, and beside kubectl, whose words it has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from mcm.api.machine import MACHINE_DEPLOYMENTS
from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.clock import SystemClock
from mcm.sandbox.cluster import create_all
from mcm.sandbox.loopback import LoopbackTransport
from tests.integration.background import BackgroundServer
from tests.integration.kubectl import PATIENCE, Kubectl

_namespaces = count(1)


class Rollouts:
    """A namespace with a deployment that nobody manages; its status is what a test says."""

    def __init__(self, background: BackgroundServer) -> None:
        self.namespace = f"rollouts-{next(_namespaces)}"
        self._background = background
        background.do(create_all(background.server, self._manifests()))

    def _manifests(self) -> list[JSONObject]:
        template = {
            "metadata": {"labels": {"name": "pool"}},
            "spec": {"class": {"kind": "MachineClass", "name": "a"}},
        }
        selector = {"matchLabels": {"name": "pool"}}
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}},
            {
                "apiVersion": MACHINE_DEPLOYMENTS.api_version,
                "kind": MACHINE_DEPLOYMENTS.kind,
                "metadata": {"name": "pool", "namespace": self.namespace},
                "spec": {"replicas": 2, "selector": selector, "template": template},
            },
        ]

    def report(self, **status: object) -> None:
        self._background.do(self._patch({"status": {"observedGeneration": 1, **status}}))

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            self._command(arguments),
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            self._command(arguments),
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "mcm", "rollout", *arguments, "-n", self.namespace]

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "KUBECONFIG": str(self._background.kubeconfig),
            "PYTHONUNBUFFERED": "1",
        }

    def _client(self) -> Client:
        return Client(LoopbackTransport(self._background.server), clock=SystemClock())

    async def _patch(self, change: JSONObject) -> None:
        await self._client().patch(
            MACHINE_DEPLOYMENTS, "pool", change, namespace=self.namespace, subresource="status"
        )


@pytest.fixture
def rollouts(background: BackgroundServer) -> Rollouts:
    return Rollouts(background)


def test_status_follows_until_it_is_done(rollouts: Rollouts) -> None:
    rollouts.report(updatedReplicas=1, replicas=2, availableReplicas=2)
    with rollouts.started("status", "pool") as process:
        assert process.stdout is not None
        assert "1 out of 2 new machines" in process.stdout.readline()
        rollouts.report(updatedReplicas=2, replicas=2, availableReplicas=2)
        assert process.stdout.readline() == 'deployment "pool" successfully rolled out\n'
        assert process.wait(PATIENCE) == 0


def test_ctrl_c_ends_it_without_a_word(rollouts: Rollouts) -> None:
    rollouts.report(updatedReplicas=1, replicas=2)
    with rollouts.started("status", "pool") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.read() == ""


def test_a_plan_and_a_refusal(rollouts: Rollouts) -> None:
    code, out, err = rollouts.run("plan", "pool")
    assert (code, err) == (0, "")
    assert "is made, with 2" in out
    assert rollouts.run("resume", "pool") == (
        1,
        "",
        'mcm: machinedeployments.machine.sapcloud.io "pool" is not paused\n',
    )
    assert rollouts.run("status", "pod/pool")[0] == 2


def test_nobody_listens(rollouts: Rollouts, background: BackgroundServer, unused_port: int) -> None:
    url = f"https://127.0.0.1:{unused_port}"
    kubeconfig = background.kubeconfig
    text = kubeconfig.read_text().replace(background.front.url, url)
    nowhere = kubeconfig.with_name(f"nowhere-{unused_port}.yaml")
    nowhere.write_text(text)
    code, out, err = rollouts.run("plan", "pool", "--kubeconfig", str(nowhere))
    assert (code, out) == (1, "")
    assert err.startswith("mcm: ") and err.count("\n") == 1
    assert str(unused_port) in err


@pytest.mark.kubectl
def test_it_speaks_as_kubectl_does_of_deployments(rollouts: Rollouts, kubectl: Kubectl) -> None:
    """The words differ in the kind only; the exit codes not at all."""
    labels = {"app": "pool"}
    kubectl(
        "create",
        "-f",
        "-",
        stdin={
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "pool"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "a", "image": "a"}]},
                },
            },
        },
    )
    for arguments in (
        ("pause",),
        ("pause",),
        ("restart",),
        ("undo",),
        ("resume",),
        ("resume",),
        ("restart",),
    ):
        theirs = kubectl.run("rollout", *arguments, "deployment/pool")
        code, out, err = rollouts.run(*arguments, "pool")
        assert code == theirs.code, (arguments, err, theirs.err)
        expected = theirs.out.replace("deployment.apps", "machinedeployment.machine.sapcloud.io")
        assert out == expected, arguments
