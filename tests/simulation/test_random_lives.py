"""Fleets that live through whatever a seed thinks of, and must end as declared all the same."""

from __future__ import annotations

import random

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.thoroughness import part_of

SEEDS = part_of(range(12), one_in=3, in_ci=2)
TROUBLES = 8


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_the_fleet_ends_as_declared(seed: int) -> None:
    async def main() -> None:
        async with Simulation(seed=seed) as sim:
            chance = random.Random(f"life {seed}")
            _make_the_network_bad(sim)
            await sim.apply(samples.load())
            for _ in range(TROUBLES):
                await _trouble(sim, chance)
                await sim.pass_time(chance.uniform(0, 40))
            sim.faults.clear()
            wanted, klass = chance.randint(1, 8), chance.choice(["small", "large"])
            await _declare(sim, replicas=wanted, klass=klass)
            await sim.until(
                lambda: _as_declared(sim, wanted, klass), within=1800, what=f"{wanted} of {klass}"
            )
            await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
            kinds = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, VIRTUAL_MACHINES, NODES)
            await sim.until(
                lambda: not any(sim.objects(k) for k in kinds), within=1800, what="nothing is left"
            )

    run_virtual(main)


def _make_the_network_bad(sim: Simulation) -> None:
    """A few percent of everything: refusals, lost answers, conflicts, overload, dead watches."""
    anything = "GET|POST|PATCH|DELETE"
    sim.faults.refuse(method=anything, path="machine|nodes", probability=0.02)
    sim.faults.lose_answers(path="machine|nodes", probability=0.02)
    sim.faults.answer(409, method="PATCH", path="machine|nodes", probability=0.03)
    sim.faults.answer(429, retry_after=1, method=anything, path="machine", probability=0.02)
    sim.faults.answer(500, method=anything, path="machine|nodes", probability=0.02)
    sim.faults.delay((0.0, 0.3), back=(0.0, 0.3), path="machine|nodes|secrets")
    sim.faults.end_watches(how=WatchEnd.FROZEN, after=30.0, probability=0.05)
    sim.faults.end_watches(how=WatchEnd.TORN, events=20, probability=0.2)


async def _trouble(sim: Simulation, chance: random.Random) -> None:
    match chance.randrange(6):
        case 0:
            await _declare(sim, replicas=chance.randint(0, 8))
        case 1:
            await _declare(sim, klass=chance.choice(["small", "large"]))
        case 2:
            await _lose_a_vm(sim, chance)
        case 3:
            await sim.crash_manager()
            await sim.pass_time(chance.uniform(0, 20))
            sim.start_manager()
        case 4:
            sim.faults.cut_watches(chance.choice(list(WatchEnd)))
        case _:
            sim.server.store.compact()
            sim.server.end_watches()


async def _lose_a_vm(sim: Simulation, chance: random.Random) -> None:
    vms = sim.objects(VIRTUAL_MACHINES)
    if vms:
        name = _meta(chance.choice(vms))["name"]
        await sim.client.delete(VIRTUAL_MACHINES, str(name), namespace="default")


async def _declare(
    sim: Simulation, *, replicas: int | None = None, klass: str | None = None
) -> None:
    spec: JSONObject = {}
    if replicas is not None:
        spec["replicas"] = replicas
    if klass is not None:
        spec["template"] = {"spec": {"class": {"name": klass}}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec}, namespace="default")


def _as_declared(sim: Simulation, wanted: int, klass: str) -> bool:
    machines = sim.objects(MACHINES)
    classes = {m["spec"]["class"]["name"] for m in machines}  # type: ignore[index]
    names = {_meta(m)["name"] for m in machines}
    return (
        len(machines) == wanted == sim.running()
        and classes == {klass}
        and {_meta(vm)["name"] for vm in sim.objects(VIRTUAL_MACHINES)} == names
        and {_meta(node)["name"] for node in sim.objects(NODES)} == names
    )


def _meta(obj: JSONObject) -> JSONObject:
    meta = obj["metadata"]
    assert isinstance(meta, dict)
    return meta
