"""The example objects of the specification's operations chapters, applied as they stand there.

Only the class's kind is ``MachineClass``: the per-cloud kinds of that time are gone.
"""

from __future__ import annotations

import pytest

from mcm.api.core import NODES
from mcm.api.machine import GROUP, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.simulation.harness import Simulation, name_of, phase_of
from mcm.simulation.virtualtime import run_virtual

API_VERSION = f"{GROUP}/v1alpha1"
LABELS = {"test-label": "test-label"}
CLASS = {"kind": "MachineClass", "name": "test-class"}
TEMPLATE: JSONObject = {"metadata": {"labels": LABELS}, "spec": {"class": CLASS}}

MACHINE_CLASS: JSONObject = {
    "apiVersion": API_VERSION,
    "kind": "MachineClass",
    "metadata": {"name": "test-class", "namespace": "default"},
    "providerSpec": {"createLatency": "1s"},
}
MACHINE: JSONObject = {
    "apiVersion": API_VERSION,
    "kind": "Machine",
    "metadata": {"labels": LABELS, "name": "test-machine", "namespace": "default"},
    "spec": {"class": CLASS},
}
MACHINE_SET: JSONObject = {
    "apiVersion": API_VERSION,
    "kind": "MachineSet",
    "metadata": {"name": "test-machine-set", "namespace": "default"},
    "spec": {
        "minReadySeconds": 200,
        "replicas": 3,
        "selector": {"matchLabels": LABELS},
        "template": TEMPLATE,
    },
}
MACHINE_DEPLOYMENT: JSONObject = {
    "apiVersion": API_VERSION,
    "kind": "MachineDeployment",
    "metadata": {"name": "test-machine-deployment", "namespace": "default"},
    "spec": {
        "minReadySeconds": 200,
        "replicas": 3,
        "selector": {"matchLabels": LABELS},
        "strategy": {
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1},
            "type": "RollingUpdate",
        },
        "template": TEMPLATE,
    },
}


@pytest.mark.parametrize(
    ("example", "resource", "machines"),
    [
        (MACHINE, MACHINES, 1),
        (MACHINE_SET, MACHINE_SETS, 3),
        (MACHINE_DEPLOYMENT, MACHINE_DEPLOYMENTS, 3),
    ],
    ids=["machine", "machine-set", "machine-deployment"],
)
def test_an_example_runs_heals_and_leaves_nothing(
    example: JSONObject, resource: Resource[KubeObject], machines: int
) -> None:
    async def main() -> None:
        async with Simulation(seed=1) as sim:
            await sim.apply([MACHINE_CLASS, example])
            await sim.until(lambda: sim.running() == machines, within=60)
            if resource is not MACHINES:
                await _delete_a_machine_and_see_it_replaced(sim, machines)
            await sim.client.delete(resource, name_of(example), namespace="default")
            kinds = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, VIRTUAL_MACHINES, NODES)
            await sim.until(lambda: not any(sim.objects(k) for k in kinds), within=60)

    run_virtual(main)


def test_a_machine_set_of_its_own_is_scaled_by_its_user() -> None:
    async def main() -> None:
        async with Simulation(seed=2) as sim:
            await sim.apply([MACHINE_CLASS, MACHINE_SET])
            for replicas in (5, 1):
                await sim.client.patch(
                    MACHINE_SETS,
                    "test-machine-set",
                    {"spec": {"replicas": replicas}},
                    namespace="default",
                )
                await sim.until(lambda n=replicas: _all_running(sim, n), within=60)  # type: ignore[misc]

    run_virtual(main)


async def _delete_a_machine_and_see_it_replaced(sim: Simulation, machines: int) -> None:
    victim = name_of(sim.objects(MACHINES)[0])
    await sim.client.delete(MACHINES, victim, namespace="default")
    await sim.until(
        lambda: _all_running(sim, machines) and victim not in map(name_of, sim.objects(MACHINES)),
        within=60,
    )


def _all_running(sim: Simulation, machines: int) -> bool:
    phases = [phase_of(m) for m in sim.objects(MACHINES)]
    return phases == ["Running"] * machines
