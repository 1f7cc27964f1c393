"""What a machine costs the API server, counted by the server itself."""

from __future__ import annotations

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual

FLEET = 20


def test_creation_costs_five_writes_deletion_seven_and_a_steady_fleet_none() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await sim.apply(samples.load())
            await _scale(sim, FLEET)
            await sim.until(lambda: sim.running() == FLEET, within=120)
            await sim.pass_time(30)
            created = _machine_writes(sim)
            assert created <= 5 * FLEET
            assert sim.server.requests.writes(resource="nodes", agent="mcm") <= 2 * FLEET

            before = sim.server.requests.writes(agent="mcm")
            await sim.pass_time(60)
            assert sim.server.requests.writes(agent="mcm") == before

            await _scale(sim, 0)
            await sim.until(lambda: not sim.objects(MACHINES), within=120)
            assert _machine_writes(sim) - created <= 7 * FLEET
            assert not sim.objects(NODES)

    run_virtual(main)


def test_a_replaced_machine_costs_thirteen_writes() -> None:
    async def main() -> None:
        async with Simulation(seed=4) as sim:
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=120)
            await sim.pass_time(30)
            before = _machine_writes(sim)
            victim = str(sim.objects(VIRTUAL_MACHINES)[0]["metadata"]["name"])  # type: ignore[index]
            await sim.client.delete(VIRTUAL_MACHINES, victim, namespace="default")
            await sim.until(lambda: sim.running() == 2, within=120)
            await sim.until(lambda: sim.running() == 3, within=120)
            await sim.pass_time(30)
            assert _machine_writes(sim) - before <= 13

    run_virtual(main)


async def _scale(sim: Simulation, replicas: int) -> None:
    await sim.client.patch(
        MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": replicas}}, namespace="default"
    )


def _machine_writes(sim: Simulation) -> int:
    return sim.server.requests.writes(resource=MACHINES.name, agent="mcm")
