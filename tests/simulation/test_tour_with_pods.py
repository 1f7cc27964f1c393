"""The tour of ``make start`` under virtual time, with the pods that run on the sample fleet."""

from __future__ import annotations

from collections.abc import Callable

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.sandbox.world.kinds import DEPLOYMENTS, PERSISTENT_VOLUME_CLAIMS, PODS
from mcm.sandbox.world.stateful_sets.kinds import STATEFUL_SETS
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

_TO_LARGE: JSONObject = {"spec": {"template": {"spec": {"class": {"name": "large"}}}}}


async def begun(sim: Simulation) -> None:
    await sim.apply([*samples.load(), *samples.load_workload()])
    await sim.until(lambda: sim.running() == 3 and len(serving(sim)) == 5, within=30)


def names(sim: Simulation) -> set[str]:
    return {name_of(machine) for machine in sim.objects(MACHINES)}


def serving(sim: Simulation) -> dict[str, str]:
    """Node of each pod that is ready."""
    found: dict[str, str] = {}
    for pod in sim.objects(PODS):
        spec, status = pod["spec"], pod["status"]
        assert isinstance(spec, dict) and isinstance(status, dict)
        states = {c["type"]: c["status"] for c in status.get("conditions", ())}
        if states.get("Ready") == "True":
            found[name_of(pod)] = spec["nodeName"]
    return found


def volumes(sim: Simulation) -> dict[str, str]:
    found: dict[str, str] = {}
    for claim in sim.objects(PERSISTENT_VOLUME_CLAIMS):
        spec = claim["spec"]
        assert isinstance(spec, dict)
        found[name_of(claim)] = spec["volumeName"]
    return found


def fewest(sim: Simulation, prefix: str) -> Callable[[], int]:
    """Return what tells how few pods of a name there ever were ready, from now on."""
    counts: list[int] = []

    def look() -> None:
        counts.append(sum(name.startswith(prefix) for name in serving(sim)))

    look()
    sim.on_change(PODS, look)
    return lambda: min(counts)


def test_a_rollout_moves_pods_under_their_budget_and_disks_along_with_them() -> None:
    async def main() -> None:
        async with Simulation(seed=1) as sim:
            await begun(sim)
            old, disks = set(serving(sim).values()), volumes(sim)
            assert len(old) == 3, "the pods are spread"
            web = fewest(sim, "web-")
            await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", _TO_LARGE, namespace="default")
            await sim.until(
                lambda: sim.running() == 3 and not old & names(sim) and len(serving(sim)) == 5,
                within=60,
            )
            assert web() >= 2
            assert volumes(sim) == disks and sorted(disks) == ["data-store-0", "data-store-1"]

    run_virtual(main)


def test_nothing_is_left_of_fleet_and_pods_that_are_deleted_together() -> None:
    async def main() -> None:
        async with Simulation(seed=2) as sim:
            await begun(sim)
            for resource, name in (
                (MACHINE_DEPLOYMENTS, "sample"),
                (DEPLOYMENTS, "web"),
                (STATEFUL_SETS, "store"),
            ):
                await sim.client.delete(resource, name, namespace="default")
            await sim.until(lambda: not sim.objects(MACHINES), within=20)
            assert not sim.objects(VIRTUAL_MACHINES) and not sim.objects(PODS)

    run_virtual(main)


def test_a_fleet_deleted_alone_is_held_by_the_budget_for_the_drain_timeout() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await begun(sim)
            web = fewest(sim, "web-")
            await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
            await sim.pass_time(55)
            assert web() == 2 and sim.objects(MACHINES)
            await sim.until(lambda: not sim.objects(MACHINES), within=30)
            assert not sim.objects(VIRTUAL_MACHINES)

    run_virtual(main)


def test_a_killed_machine_is_replaced_and_its_pods_run_again() -> None:
    async def main() -> None:
        async with Simulation(seed=4, node_grace=20.0) as sim:
            await begun(sim)
            disks = volumes(sim)
            victim = serving(sim)["store-0"]
            await sim.client.delete(VIRTUAL_MACHINES, victim, namespace="default")
            await sim.until(lambda: victim not in names(sim) and sim.running() == 3, within=150)
            await sim.until(lambda: len(serving(sim)) == 5, within=90)
            assert volumes(sim) == disks

    run_virtual(main)
