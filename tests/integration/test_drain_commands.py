"""``mcm drain`` and ``mcm uncordon`` as processes of their own, over HTTPS."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import count

import pytest

from mcm.api.core import NODES, POD_DISRUPTION_BUDGETS, PODS, Node
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.client.client import Client
from mcm.clock import SystemClock
from mcm.sandbox.cluster import create_all
from mcm.sandbox.loopback import LoopbackTransport
from tests.integration.background import BackgroundServer
from tests.integration.kubectl import PATIENCE

_numbers = count(1)
_LONELY = "--delete-unmanaged"


class Held:
    """A Node with one pod, which a budget holds for ever. Nobody runs it."""

    def __init__(self, background: BackgroundServer) -> None:
        self._background = background
        self.name = f"held-{next(_numbers)}"
        background.do(self._create())

    async def _create(self) -> None:
        labels = {"app": self.name}
        metadata = {"name": self.name, "namespace": self.name, "labels": labels}
        container = {"name": "main", "image": "x"}
        await create_all(
            self._background.server,
            [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}},
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}},
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": metadata,
                    "spec": {"nodeName": self.name, "containers": [container]},
                },
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": metadata,
                    "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
                },
            ],
        )
        ready = [{"type": "Ready", "status": "True"}]
        await self._report(PODS, {"phase": "Running", "conditions": ready})
        counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
        budget: JSONObject = {"observedGeneration": 1, "disruptionsAllowed": 0, **counts}
        await self._report(POD_DISRUPTION_BUDGETS, budget)

    async def _report(self, resource: Resource[KubeObject], status: JSONObject) -> None:
        change = {"status": status}
        await self._client().patch(
            resource, self.name, change, namespace=self.name, subresource="status"
        )

    def node(self) -> Node:
        async def work() -> Node:
            return await self._client().get(NODES, self.name)

        return self._background.do(work())

    def _client(self) -> Client:
        return Client(LoopbackTransport(self._background.server), clock=SystemClock())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "mcm", *arguments],
            env={
                **os.environ,
                "KUBECONFIG": str(self._background.kubeconfig),
                "PYTHONUNBUFFERED": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=PATIENCE)
            return process.returncode, out, err


@pytest.fixture
def held(background: BackgroundServer) -> Held:
    return Held(background)


def test_plan_drain_interrupt_and_uncordon(held: Held) -> None:
    code, out, err = held.run("drain", "plan", held.name, _LONELY, "-o", "json")
    assert (code, err) == (3, "")
    (pod,) = json.loads(out)["pods"]
    assert pod["standing"]["cause"] == "held by a misconfigured disruption budget"
    assert not held.node().spec.unschedulable

    with held.start("drain", held.name, _LONELY) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            assert process.stdout.readline() == f"node/{held.name} cordoned\n"
            assert "misconfigured" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
        finally:
            process.kill()
        assert "goes on" in process.stdout.read()
        assert process.stderr.read() == ""
    assert held.node().spec.unschedulable

    code, out, err = held.run("drain", held.name, _LONELY, "--timeout", "3s")
    assert code == 1 and "the time for node" in err and err.count("\n") == 1

    code, out, err = held.run("uncordon", held.name)
    assert (code, out, err) == (0, f"node/{held.name} uncordoned\n", "")
    after = held.node()
    assert not after.spec.unschedulable and not after.metadata.annotations
