"""A drain that a budget holds up, as people see it: on the machine, its set and its deployment."""

from __future__ import annotations

from typing import Any

from mcm.api.core import POD_DISRUPTION_BUDGETS, PODS
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, Resource, T
from mcm.events import CORE_EVENTS
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

NAMESPACE = "default"
WORKLOAD: JSONObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "app", "namespace": NAMESPACE},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "app"}},
        "template": {
            "metadata": {"labels": {"app": "app"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "c", "image": "i"}],
            },
        },
    },
}
BUDGET: JSONObject = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "never", "namespace": NAMESPACE},
    "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "app"}}},
}


def test_a_held_up_drain_is_told_everywhere_once_and_taken_back() -> None:
    async def main() -> None:
        async with Simulation(seed=8) as sim:
            await begin(sim)
            node = str(sim.objects(PODS)[0]["spec"]["nodeName"])  # type: ignore[index]
            await sim.client.delete(MACHINES, node, namespace=NAMESPACE)
            await sim.until(lambda: condition(sim, MACHINES, node, "Drained") != {}, within=10)
            said = condition(sim, MACHINES, node, "Drained")
            assert (said["status"], said["reason"]) == ("False", "Blocked")
            assert "held by a misconfigured disruption budget: default/app-" in said["message"]
            operation = one(sim, MACHINES, node)["status"]["lastOperation"]
            phrase = "default/never is misconfigured and requires zero voluntary evictions"
            assert operation["state"] == "Failed" and phrase in operation["description"]
            await sim.pass_time(5)
            for resource, name in (
                (MACHINE_SETS, owner_of(sim, node)),
                (MACHINE_DEPLOYMENTS, "sample"),
            ):
                rolled_up = condition(sim, resource, name, "DrainBlocked")
                assert rolled_up["status"] == "True" and node in rolled_up["message"]

            version = one(sim, MACHINES, node)["metadata"]["resourceVersion"]
            written = sim.server.requests.writes(agent="mcm", resource=MACHINES.name)
            await sim.pass_time(1500)
            assert one(sim, MACHINES, node)["metadata"]["resourceVersion"] == version
            assert sim.server.requests.writes(agent="mcm", resource=MACHINES.name) == written
            assert events(sim).count("DrainBlocked") == 1

            loose: JSONObject = {"spec": {"maxUnavailable": 1}}
            await sim.client.patch(POD_DISRUPTION_BUDGETS, "never", loose, namespace=NAMESPACE)
            await sim.until(lambda: not one(sim, MACHINES, node), within=60)
            await sim.until(
                lambda: not condition(sim, MACHINE_DEPLOYMENTS, "sample", "DrainBlocked"), within=30
            )
            assert events(sim).count("Drained") == 1
            assert "ForceDrained" not in events(sim)

    run_virtual(main)


async def begin(sim: Simulation) -> None:
    await sim.apply(samples.load())
    patch: JSONObject = {"spec": {"template": {"spec": {"drainTimeout": "2h"}}}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", patch, namespace=NAMESPACE)
    await sim.until(lambda: sim.running() == len(sim.objects(MACHINES)) > 0, within=300)
    await sim.apply([WORKLOAD, BUDGET])
    await sim.until(lambda: bool(sim.objects(PODS)), within=30)
    await sim.pass_time(30)


def one(sim: Simulation, resource: Resource[T], name: str) -> dict[str, Any]:
    return next((o for o in sim.objects(resource) if name_of(o) == name), {})


def condition(sim: Simulation, resource: Resource[T], name: str, kind: str) -> dict[str, Any]:
    status = one(sim, resource, name).get("status", {})
    conditions = status.get("conditions") or status.get("machineSetCondition") or ()
    return next((c for c in conditions if c["type"] == kind), {})


def owner_of(sim: Simulation, machine: str) -> str:
    return str(one(sim, MACHINES, machine)["metadata"]["ownerReferences"][0]["name"])


def events(sim: Simulation) -> list[str]:
    return [str(event["reason"]) for event in sim.objects(CORE_EVENTS)]
