"""What is decided is counted once, and what is gone is shown no more."""

from __future__ import annotations

from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.overshooting_fleet import Fleet

PERIOD = 900.0


def value(sim: Simulation, name: str, **labels: str) -> float | None:
    return sim.registry.get_sample_value(name, labels)


def test_a_machine_replaced_for_its_health_is_counted_and_others_are_not() -> None:
    async def main() -> None:
        async with Simulation(seed=1) as sim:
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=120)
            first, second, _ = sorted(name_of(m) for m in sim.objects(MACHINES))
            await sim.client.delete(MACHINES, first, namespace="default")
            await sim.pass_time(120)
            assert value(sim, "mcm_machine_stale_machines_total") == 0
            off: JSONObject = {"spec": {"powerState": "Off"}}
            await sim.client.patch(VIRTUAL_MACHINES, second, off, namespace="default")
            await sim.pass_time(300)
            assert second not in {name_of(m) for m in sim.objects(MACHINES)}
            assert value(sim, "mcm_machine_stale_machines_total") == 1
            # It is asked before it is decided, and again before that is written.
            assert value(sim, "mcm_machine_failure_permits_total", answer="granted") == 2
            assert value(sim, "mcm_machine_failure_permits_total", answer="refused") == 0

    run_virtual(main)


def test_an_orphan_is_shown_until_it_is_deleted_and_its_class_until_that_goes() -> None:
    async def main() -> None:
        of = {"namespace": "default", "machine_class": "small"}
        async with Simulation(seed=2) as sim:
            await sim.apply(samples.load()[:-1])
            await sim.pass_time(1)
            orphan: JSONObject = {
                "apiVersion": VIRTUAL_MACHINES.api_version,
                "kind": VIRTUAL_MACHINES.kind,
                "metadata": {
                    "name": "nobodys",
                    "namespace": "default",
                    "labels": {"simulation.machine.sapcloud.io/machine-class": "small"},
                },
                "spec": {"machineName": "nobodys", "machineClass": "small"},
            }
            await sim.apply([orphan])
            await sim.pass_time(PERIOD)
            assert value(sim, "mcm_orphan_vms", **of) == 1
            await sim.until(lambda: not sim.objects(VIRTUAL_MACHINES), within=3 * PERIOD)
            await sim.pass_time(10)
            assert value(sim, "mcm_orphan_vms", **of) == 0
            collected = "mcm_orphan_vms_collected_total"
            assert value(sim, collected, **of, result="deleted") == 1
            assert value(sim, collected, **of, result="stays") == 0
            await sim.client.delete(MACHINE_CLASSES, "small", namespace="default")
            await sim.pass_time(60)
            assert value(sim, "mcm_orphan_vms", **of) is None
            assert value(sim, collected, **of, result="deleted") is None

    run_virtual(main)


def test_freezing_and_unfreezing_are_counted() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3)
            decisions = "mcm_machine_set_freeze_decisions_total"
            assert value(sim, decisions, action="freeze") == 0
            await fleet.make_too_many(3)
            await sim.until(fleet.frozen, within=30)
            assert value(sim, decisions, action="freeze") == 1
            await fleet.release()
            await sim.until(fleet.free, within=60)
            assert value(sim, decisions, action="unfreeze") == 1

    run_virtual(main)
