"""An hour of a fleet's life in seconds: the whole manager in a simulated world, with faults."""

from __future__ import annotations

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from mcm.simulation.witness import FleetWitness

SURGE = UNAVAILABLE = 1
# A series of alike events is written once more, with its final count, when it has ended.
EVENT_SERIES_END = 420.0


def test_a_fleet_comes_up_grows_rolls_heals_and_leaves_nothing_behind_through_faults() -> None:
    async def main() -> None:
        async with Simulation(seed=7) as sim:
            seen = FleetWitness(sim)
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=60, what="three machines run")
            await _grow_through_a_lost_watch_and_a_conflict(sim)
            await _roll_through_cloud_errors(sim, seen)
            await _lose_a_vm(sim, seen)
            await sim.pass_time(EVENT_SERIES_END)
            writes = _writes(sim)
            await sim.pass_time(1800)
            assert _writes(sim) == writes, "a steady fleet was written to"
            await _delete(sim)
            assert sim.clock.monotonic() > 1800
            await sim.until(lambda: sim.clock.monotonic() >= 3600, within=3600)
            assert not sim.objects(VIRTUAL_MACHINES)

    run_virtual(main)


async def _grow_through_a_lost_watch_and_a_conflict(sim: Simulation) -> None:
    assert sim.faults.cut_watches(WatchEnd.TORN) > 5
    sim.faults.answer(409, method="PATCH", path="/machines/", times=2)
    sim.faults.lose_answers(method="POST", path="/machines", times=1)
    await _patch(sim, {"replicas": 10})
    await sim.until(lambda: sim.running() == 10, within=120, what="ten machines run")
    await sim.pass_time(30)
    assert len(sim.objects(MACHINES)) == 10, "an answer that got lost cost a machine too many"


async def _roll_through_cloud_errors(sim: Simulation, seen: FleetWitness) -> None:
    failures = [{"verb": "create", "code": "Unavailable", "message": "no capacity now", "times": 1}]
    await sim.client.patch(
        MACHINE_CLASSES, "large", {"providerSpec": {"failures": failures}}, namespace="default"
    )
    seen.restart()
    await _patch(sim, {"template": {"spec": {"class": {"name": "large"}}}})
    await sim.until(
        lambda: sim.running() == 10 and _classes(sim) == {"large"},
        within=1200,
        what="all ten are of the new class",
    )
    assert seen.most <= 10 + SURGE
    assert seen.fewest_serving >= 10 - UNAVAILABLE


async def _lose_a_vm(sim: Simulation, seen: FleetWitness) -> None:
    victim = _names(sim.objects(VIRTUAL_MACHINES))[0]
    seen.restart()
    await sim.client.delete(VIRTUAL_MACHINES, victim, namespace="default")
    await sim.until(lambda: victim not in _names(sim.objects(MACHINES)), within=180)
    await sim.until(lambda: sim.running() == 10, within=120, what="the dead VM is replaced")
    assert seen.fewest_serving == 9, "one VM died, and more than one machine stopped serving"


async def _delete(sim: Simulation) -> None:
    await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
    kinds = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, VIRTUAL_MACHINES, NODES)
    await sim.until(
        lambda: not any(sim.objects(kind) for kind in kinds),
        within=120,
        what="nothing is left",
    )


async def _patch(sim: Simulation, spec: JSONObject) -> None:
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec}, namespace="default")


def _writes(sim: Simulation) -> int:
    return sim.server.requests.writes(agent="mcm")


def _names(objects: list[JSONObject]) -> list[str]:
    return [str(o["metadata"]["name"]) for o in objects]  # type: ignore[index]


def _classes(sim: Simulation) -> set[str]:
    return {m["spec"]["class"]["name"] for m in sim.objects(MACHINES)}  # type: ignore[index]
