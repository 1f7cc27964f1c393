"""What pods cost that budgets hold: requests counted by the server itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest

from mcm.api.core import (
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject, Resource
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.thoroughness import part_of

PHRASE = "is misconfigured and requires zero voluntary evictions"


class Requests:
    """Evictions and deletions of pods that the manager has asked for."""

    def __init__(self, sim: Simulation) -> None:
        self._counts = sim.server.requests

    @property
    def evictions(self) -> int:
        return self._counts.total(resource="pods", subresource="eviction", agent="mcm")

    @property
    def accepted(self) -> int:
        return self._counts.total(resource="pods", subresource="eviction", agent="mcm", code=201)

    @property
    def deletions(self) -> int:
        return self._counts.total(verb="delete", resource="pods", subresource="", agent="mcm")


def test_a_hundred_pods_with_volumes_behind_a_budget_of_nothing_cost_no_request() -> None:
    async def main() -> None:
        async with Simulation(seed=5) as sim:
            await sim.apply(_patient(samples.load()))
            await sim.until(lambda: sim.running() == 3, within=120)
            node = name_of(sim.objects(NODES)[0])
            await sim.apply([_budget("db", maxUnavailable=0)])
            await sim.apply(_pods_with_volumes(node, 100))
            await sim.until(lambda: _ready(sim, "db") == 100, within=900)
            requests = Requests(sim)
            machine = _machine_of(sim, node)
            await sim.client.delete(MACHINES, machine, namespace="default")
            await sim.pass_time(10)
            assert f"default/db {PHRASE}" in _last_operation(sim, machine)
            before = _written(sim)
            await sim.pass_time(900)
            assert requests.evictions == requests.deletions == 0
            # What is shown, is shown again now and then, not for every pod and look.
            assert _written(sim) - before <= 30

            await sim.client.patch(
                POD_DISRUPTION_BUDGETS,
                "db",
                {"spec": {"maxUnavailable": 3}},
                namespace="default",
            )
            await sim.pass_time(2)
            assert requests.accepted >= 1
            assert requests.evictions == requests.accepted

    run_virtual(main)


@pytest.mark.parametrize("allowed", part_of([3, 1], one_in=2))
def test_drains_that_share_a_budget_ask_no_more_than_it_allows(allowed: int) -> None:
    async def main() -> None:
        async with Simulation(seed=6) as sim:
            await sim.apply(_two_pools(10))
            await sim.until(lambda: sim.running() == 20, within=300)
            await sim.apply([_app(40), _budget("web", maxUnavailable=allowed)])
            await sim.until(lambda: _ready(sim, "web") == 40, within=300)
            leaving = _machines_of_pool(sim, "sample")
            least = [40]

            def look() -> None:
                least[0] = min(least[0], _ready(sim, "web"))

            sim.on_change(PODS, look)
            moved = len(_pods_on(sim, leaving))
            await _scale(sim, "sample", 0)
            await sim.until(lambda: len(sim.objects(MACHINES)) == 10, within=3600)
            requests = Requests(sim)
            assert requests.accepted == moved
            # What is refused is what the status promised while its controller counted.
            assert requests.evictions - requests.accepted <= moved // 10
            assert requests.deletions == 0
            assert least[0] >= 40 - allowed

    run_virtual(main)


# ---- objects -------------------------------------------------------------------------------------


def _labels(app: str) -> dict[str, Any]:
    return {"app": app}


def _budget(app: str, **spec: Any) -> JSONObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": _labels(app)}, **spec},
    }


def _app(replicas: int) -> JSONObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": _labels("web")},
            "template": {"metadata": {"labels": _labels("web")}, "spec": _containers()},
        },
    }


def _containers() -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "app"}]}


def _pods_with_volumes(node: str, count: int) -> list[JSONObject]:
    made: list[JSONObject] = []
    for number in range(count):
        name = f"db-{number}"
        made.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
        )
        claim = {"claimName": name}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": _labels("db")},
                "spec": {
                    **_containers(),
                    "nodeSelector": {"kubernetes.io/hostname": node},
                    "volumes": [{"name": "data", "persistentVolumeClaim": claim}],
                },
            }
        )
    return made


def _patient(manifests: Iterable[JSONObject]) -> list[dict[str, Any]]:
    """Have machines drained for hours: the sample is in a hurry."""
    found = [cast("dict[str, Any]", manifest) for manifest in manifests]
    for manifest in found:
        if manifest["kind"] == "MachineDeployment":
            manifest["spec"]["template"]["spec"]["drainTimeout"] = "2h"
    return found


def _two_pools(size: int) -> Sequence[JSONObject]:
    manifests = _patient(samples.load())
    (pool,) = (m for m in manifests if m["kind"] == "MachineDeployment")
    pool["spec"]["replicas"] = size
    other = cast("dict[str, Any]", _renamed(pool, pool["metadata"]["name"], "other"))
    return [*manifests, other]


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, old, new) for inner in value]
    return new if value == old else value


# ---- what is there -------------------------------------------------------------------------------


def _named(sim: Simulation, resource: Resource[Any]) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", sim.objects(resource))


def _ready(sim: Simulation, app: str) -> int:
    return sum(
        pod["metadata"].get("labels", {}).get("app") == app
        and "deletionTimestamp" not in pod["metadata"]
        and any(
            c["type"] == "Ready" and c["status"] == "True"
            for c in pod.get("status", {}).get("conditions", ())
        )
        for pod in _named(sim, PODS)
    )


def _machine_of(sim: Simulation, node: str) -> str:
    (found,) = (
        m["metadata"]["name"]
        for m in _named(sim, MACHINES)
        if m["metadata"]["labels"].get("node") == node
    )
    return str(found)


def _machines_of_pool(sim: Simulation, pool: str) -> set[str]:
    return {
        m["metadata"]["labels"]["node"]
        for m in _named(sim, MACHINES)
        if m["metadata"]["labels"].get("name") == pool
    }


def _pods_on(sim: Simulation, nodes: set[str]) -> list[str]:
    return [p["metadata"]["name"] for p in _named(sim, PODS) if p["spec"].get("nodeName") in nodes]


def _last_operation(sim: Simulation, machine: str) -> str:
    (found,) = (m for m in _named(sim, MACHINES) if m["metadata"]["name"] == machine)
    return str(found["status"]["lastOperation"]["description"])


def _written(sim: Simulation) -> int:
    """Count the manager's writes of what people look at; leases and disruptions are not."""
    kinds = ("machines.machine.sapcloud.io", "nodes", "events.events.k8s.io", "events")
    return sum(sim.server.requests.writes(resource=kind, agent="mcm") for kind in kinds)


async def _scale(sim: Simulation, pool: str, replicas: int) -> None:
    await sim.client.patch(
        MACHINE_DEPLOYMENTS, pool, {"spec": {"replicas": replicas}}, namespace="default"
    )
