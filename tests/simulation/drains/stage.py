"""A fleet with pods on it: apps with budgets, and sets of pods with volumes, for drains to move."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from mcm.api.core import NODES, PODS, VOLUME_ATTACHMENTS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of, phase_of

NAMESPACE: Final = "default"
LONE: Final = "lone"
"""The label of machines that no set has."""


def fleet(replicas: int, **spec: Any) -> list[JSONObject]:
    """Return the sample's fleet of large machines; ``spec`` is of the machines."""
    manifests: list[Any] = list(samples.load())
    for manifest in manifests:
        if manifest["kind"] == "MachineDeployment":
            manifest["spec"]["replicas"] = replicas
            template = manifest["spec"]["template"]["spec"]
            template["class"]["name"] = "large"
            template.pop("drainTimeout", None)
            template.pop("healthTimeout", None)
            template |= spec
    return manifests


def machine(name: str, **spec: Any) -> JSONObject:
    """Return a machine that no set has."""
    return {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"name": LONE}},
        "spec": {"class": {"kind": "MachineClass", "name": "large"}, **spec},
    }


def app(name: str, replicas: int, *, grace: int = 1, wave: str = "") -> JSONObject:
    return _workload("Deployment", name, replicas, grace, wave, {})


def stateful(name: str, replicas: int, *, grace: int = 1, wave: str = "") -> JSONObject:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    spec = {"serviceName": name, "volumeClaimTemplates": [claim]}
    return _workload("StatefulSet", name, replicas, grace, wave, spec)


def budget(name: str, app: str = "", **spec: Any) -> JSONObject:
    """Return a budget over the pods of ``app``, by default the one of that name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": {"app": app or name}}, **spec},
    }


def _workload(
    kind: str, name: str, replicas: int, grace: int, wave: str, more: dict[str, Any]
) -> JSONObject:
    annotations = {"machine.sapcloud.io/drain-wave": wave} if wave else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": annotations},
                "spec": {
                    "terminationGracePeriodSeconds": grace,
                    "containers": [{"name": "main", "image": name}],
                },
            },
            **more,
        },
    }


# ---- moving pods ---------------------------------------------------------------------------------


async def gather(sim: Simulation, node: str, apps: Collection[str]) -> None:
    """Have all pods of ``apps`` run on ``node``, and their volumes attached there only."""
    others = [name_of(n) for n in sim.objects(NODES) if name_of(n) != node]
    await cordon(sim, others, unschedulable=True)
    for pod in pods_of(sim, apps):
        if pod["spec"].get("nodeName") != node:
            await sim.client.delete(PODS, name_of(pod), namespace=NAMESPACE)
    await sim.until(lambda: _all_on(sim, node, apps), within=120)
    await cordon(sim, others, unschedulable=False)


async def cordon(sim: Simulation, nodes: Collection[str], *, unschedulable: bool) -> None:
    patch: JSONObject = {"spec": {"unschedulable": unschedulable}}
    for node in nodes:
        await sim.client.patch(NODES, node, patch)


def pods_of(sim: Simulation, apps: Collection[str]) -> list[dict[str, Any]]:
    found: list[Any] = list(sim.objects(PODS))
    return [p for p in found if p["metadata"].get("labels", {}).get("app") in apps]


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in conditions
    )


def wanted(sim: Simulation, apps: Collection[str]) -> int:
    """Count the pods that the workloads of these names ask for."""
    kinds = ("deployments", "statefulsets")
    found: list[Any] = [o for kind in kinds for o in sim.server.objects("apps", kind)]
    return sum(o["spec"]["replicas"] for o in found if name_of(o) in apps)


def all_ready(sim: Simulation, apps: Collection[str]) -> bool:
    pods = pods_of(sim, apps)
    return len(pods) == wanted(sim, apps) and all(map(is_ready, pods))


def machines(sim: Simulation) -> set[str]:
    return {name_of(m) for m in sim.objects(MACHINES)}


def is_gone(sim: Simulation, machine: str) -> bool:
    return machine not in machines(sim)


def is_running(sim: Simulation, name: str) -> bool:
    return any(name_of(m) == name and phase_of(m) == "Running" for m in sim.objects(MACHINES))


def _all_on(sim: Simulation, node: str, apps: Collection[str]) -> bool:
    attachments: list[Any] = list(sim.objects(VOLUME_ATTACHMENTS))
    return (
        all_ready(sim, apps)
        and all(pod["spec"]["nodeName"] == node for pod in pods_of(sim, apps))
        and all(a["spec"]["nodeName"] == node for a in attachments)
    )
