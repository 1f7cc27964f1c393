"""A cloud that takes its time: nobody else waits for it, and a new leader finds what it made."""

from __future__ import annotations

from dataclasses import replace

from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of, phase_of
from mcm.simulation.virtualtime import run_virtual

PLACES = 10


def test_a_class_whose_vms_take_minutes_holds_up_no_other() -> None:
    async def main() -> None:
        settings = replace(ControllerSettings(), machine_concurrent_syncs=PLACES)
        options = replace(Options(), settings=settings)
        async with Simulation(seed=11, options=options) as sim:
            await sim.apply(_fleet("slow", replicas=25, create="300s"))
            await sim.pass_time(30)
            await sim.apply(_fleet("quick", replicas=25, create="2s"))
            # A class alone has all places; the other one has its share of the reserve at once,
            # and half of all as soon as the first slow call has ended.
            took = await sim.until(lambda: _running(sim, "quick") == 25, within=299)
            assert took < 120
            assert _running(sim, "slow") == 0
            await sim.until(lambda: _running(sim, "slow") == 25, within=1100)

    run_virtual(main)


def test_a_vm_whose_creation_was_cut_short_by_a_lost_lease_is_adopted() -> None:
    """Its answer was on the way when the lease was lost: there is one VM, and it is used."""

    async def main() -> None:
        async with Simulation(seed=12) as sim:
            await sim.pass_time(5)
            made: set[str] = set()
            sim.on_change(VIRTUAL_MACHINES, lambda: made.update(_uids(sim)))
            sim.faults.delay(0.0, back=25.0, method="POST", path="virtualmachines")
            await sim.apply(_fleet("fleet", replicas=2, create="0s"))
            await sim.until(lambda: len(sim.objects(VIRTUAL_MACHINES)) == 2, within=10)
            sim.faults.refuse(method="PUT|PATCH|GET", path="leases")
            await sim.until(lambda: sim.losses > 0, within=20)
            assert not any(phase_of(machine) for machine in sim.objects(MACHINES))
            sim.faults.clear()
            await sim.until(lambda: sim.running() == 2, within=120)
            assert len(made) == 2
            assert _uids(sim) == made

    run_virtual(main)


def _uids(sim: Simulation) -> set[str]:
    return {str(vm["metadata"]["uid"]) for vm in sim.objects(VIRTUAL_MACHINES)}  # type: ignore[index]


def _running(sim: Simulation, prefix: str) -> int:
    machines = sim.objects(MACHINES)
    return sum(name_of(m).startswith(prefix) and phase_of(m) == "Running" for m in machines)


def _fleet(name: str, *, replicas: int, create: str) -> list[JSONObject]:
    """The sample's fleet under another name: its secret, one class, one deployment."""
    found = {(str(o["kind"]), name_of(o)): o for o in samples.load()}
    class_ = dict(found["MachineClass", "small"])
    class_["metadata"] = {"name": name, "namespace": "default"}
    class_["providerSpec"] = {"createLatency": create, "bootLatency": "2s", "joinLatency": "1s"}
    labels = {"name": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"class": {"kind": "MachineClass", "name": name}},
    }
    deployment: JSONObject = {
        **found["MachineDeployment", "sample"],
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
    return [found["Secret", "sample-secret"], class_, deployment]
