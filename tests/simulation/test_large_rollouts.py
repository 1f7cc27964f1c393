"""Histories in which one key writes a lot, and rightly: none of it may be taken for a fight."""

from __future__ import annotations

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual

FLEET = 30


def test_a_fleet_is_created_rolled_and_deleted_without_a_write_held_back() -> None:
    async def main() -> None:
        async with Simulation(seed=5) as sim:
            await sim.apply(samples.load())
            await _change(sim, {"replicas": FLEET})
            await sim.until(lambda: sim.running() == FLEET, within=600)
            old = _uids(sim)
            await _change(sim, {"template": {"metadata": {"labels": {"rolled": "yes"}}}})
            await sim.until(lambda: not old & _uids(sim), within=7200)
            await sim.until(lambda: sim.running() == FLEET, within=600)
            await _change(sim, {"replicas": 0})
            await sim.until(lambda: not sim.objects(MACHINES), within=1200)

    run_virtual(main)


async def _change(sim: Simulation, spec: dict[str, object]) -> None:
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec}, namespace="default")


def _uids(sim: Simulation) -> set[str]:
    return {str(machine["metadata"]["uid"]) for machine in sim.objects(MACHINES)}  # type: ignore[index]
