"""A fleet whose class the provider cannot make sense of goes as soon as somebody wants it gone."""

from __future__ import annotations

from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual


def test_a_deployment_whose_class_is_wrong_can_be_deleted_without_mending_it() -> None:
    async def main() -> None:
        async with Simulation(seed=5) as sim:
            manifests = samples.load()
            for manifest in manifests:
                if manifest["kind"] == "MachineClass":
                    manifest["providerSpec"] = {"latency": "soon"}
            await sim.apply(manifests)
            await sim.until(lambda: len(sim.objects(MACHINES)) == 3, within=60)
            await sim.pass_time(300)
            assert sim.running() == 0
            await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
            await sim.until(lambda: not sim.objects(MACHINE_DEPLOYMENTS), within=30)
            assert not sim.objects(MACHINES)
            for class_ in sim.objects(MACHINE_CLASSES):
                name = str(class_["metadata"]["name"])  # type: ignore[index]
                await sim.client.delete(MACHINE_CLASSES, name, namespace="default")
            await sim.until(lambda: not sim.objects(MACHINE_CLASSES), within=30)

    run_virtual(main)
