"""Failed machines that a set keeps without being asked, in a fleet that the whole manager runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, Machine
from mcm.api.names import ANNOTATION_PRESERVE, PRESERVE_AUTO, TAINT_PRESERVED
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual

FLEET, MOST = 5, 2
QUICK = Options(
    settings=ControllerSettings(
        health_timeout=timedelta(minutes=1), preserve_timeout=timedelta(minutes=30)
    )
)


def machines(sim: Simulation) -> list[Machine]:
    found = [msgspec.convert(m, Machine) for m in sim.objects(MACHINES)]
    return sorted(found, key=lambda m: m.metadata.name)


def living(sim: Simulation) -> list[Machine]:
    return [m for m in machines(sim) if m.metadata.deletion_timestamp is None]


def kept(sim: Simulation) -> list[Machine]:
    return [m for m in living(sim) if m.phase == "Failed" and _is_auto(m)]


def _is_auto(machine: Machine) -> bool:
    return machine.metadata.annotations.get(ANNOTATION_PRESERVE) == PRESERVE_AUTO


async def change(sim: Simulation, spec: dict[str, Any]) -> None:
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec}, namespace="default")


async def begin(sim: Simulation) -> None:
    """Run a fleet in which a third of the machines may be gone at once, and never too many kept."""
    await sim.apply(samples.load())
    await change(sim, {"replicas": FLEET, "autoPreserveFailedMachineMax": MOST})
    await sim.until(lambda: sim.running() == FLEET, within=180)
    await sim.pass_time(30)

    def look() -> None:
        assert sum(map(_is_auto, living(sim))) <= MOST

    sim.on_change(MACHINES, look)


async def kill(sim: Simulation, victim: Machine) -> None:
    name = victim.metadata.name
    await sim.client.delete(VIRTUAL_MACHINES, name, namespace="default")


async def lose_three(sim: Simulation) -> list[str]:
    """Kill three machines one after the other; return who is kept."""
    victims = machines(sim)[:3]
    for victim in victims:
        await kill(sim, victim)
        await sim.pass_time(200)
    await sim.until(lambda: len(kept(sim)) == MOST, within=300)
    await sim.until(lambda: sim.running() == FLEET - MOST, within=300)
    return [m.metadata.name for m in kept(sim)]


def counted(sim: Simulation) -> tuple[int, int, int]:
    (pool,), (one,) = sim.objects(MACHINE_DEPLOYMENTS), sim.objects(MACHINE_SETS)
    of_pool: Any = pool["status"]
    of_set: Any = one["status"]
    return (
        of_pool["preservedFailedReplicas"],
        of_set["preservedFailedReplicas"],
        of_set["autoPreserveFailedMachineCount"],
    )


def test_two_of_three_are_kept_and_drained_and_one_is_replaced_until_their_time_is_over() -> None:
    async def main() -> None:
        async with Simulation(seed=21, options=QUICK) as sim:
            await begin(sim)
            before = {m.metadata.name for m in machines(sim)}
            names = await lose_three(sim)
            assert len(living(sim)) == FLEET, "kept machines are replicas"
            assert len({m.metadata.name for m in living(sim)} - before) == 1
            await sim.pass_time(60)
            assert counted(sim) == (MOST, MOST, MOST)
            tainted = {m.node_name for m in kept(sim)}
            for node in sim.objects(NODES):
                taints: Any = node["spec"].get("taints") or []  # type: ignore[attr-defined]
                name = node["metadata"]["name"]  # type: ignore[index]
                assert (TAINT_PRESERVED in [t["key"] for t in taints]) == (name in tainted)
            writes = sim.server.requests.writes(agent="mcm")
            await sim.pass_time(300)
            assert sim.server.requests.writes(agent="mcm") == writes

            # Their time is over, one after the other: each is replaced, and its place free again.
            await sim.until(
                lambda: not {m.metadata.name for m in machines(sim)} & {*names}, within=2400
            )
            await sim.until(lambda: sim.running() == FLEET, within=300)
            assert counted(sim) == (0, 0, 0)
            victim = machines(sim)[0]
            await kill(sim, victim)
            await sim.until(lambda: len(kept(sim)) == 1, within=300)
            assert [m.metadata.name for m in kept(sim)] == [victim.metadata.name]

    run_virtual(main)


def test_a_smaller_budget_lets_the_oldest_go() -> None:
    async def main() -> None:
        async with Simulation(seed=22, options=QUICK) as sim:
            await begin(sim)
            await lose_three(sim)
            by_age = sorted(
                kept(sim), key=lambda m: (str(m.metadata.creation_timestamp), m.metadata.name)
            )
            await change(sim, {"autoPreserveFailedMachineMax": 1})
            await sim.until(lambda: sim.running() == FLEET - 1, within=300)
            assert [m.metadata.name for m in kept(sim)] == [by_age[-1].metadata.name]
            await change(sim, {"autoPreserveFailedMachineMax": 0})
            await sim.until(lambda: sim.running() == FLEET, within=300)
            assert kept(sim) == []
            await sim.pass_time(60)
            assert counted(sim) == (0, 0, 0)
            assert len(machines(sim)) == FLEET

    run_virtual(main)


@pytest.mark.parametrize("where", ["node", "machine"])
@pytest.mark.parametrize("how", ["false", None])
def test_a_person_ends_it_and_it_does_not_begin_again(where: str, how: str | None) -> None:
    async def main() -> None:
        async with Simulation(seed=23, options=QUICK) as sim:
            await begin(sim)
            subject = machines(sim)[0]
            name = subject.metadata.name
            await kill(sim, subject)
            await sim.until(lambda: len(kept(sim)) == 1, within=300)
            await sim.pass_time(60)
            if where == "node":
                # What a Node does not say cannot be taken off it: somebody asks first.
                await _ask(sim, subject, "node", "now")
                await sim.pass_time(10)
                assert kept(sim) == [], "it is that person's now, and takes no place"
            await _ask(sim, subject, where, how)
            took = await sim.until(
                lambda: name not in {m.metadata.name for m in machines(sim)}, within=120
            )
            assert took < 60
            await sim.until(lambda: sim.running() == FLEET, within=300)

    run_virtual(main)


async def _ask(sim: Simulation, of: Machine, where: str, value: str | None) -> None:
    body: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION_PRESERVE: value}}}
    if where == "node":
        await sim.client.patch(NODES, of.node_name, body)
    else:
        await sim.client.patch(MACHINES, of.metadata.name, body, namespace="default")


def test_a_node_that_says_no_has_its_machine_replaced_at_once() -> None:
    async def main() -> None:
        async with Simulation(seed=24, options=QUICK) as sim:
            await begin(sim)
            subject = machines(sim)[0]
            await _ask(sim, subject, "node", "false")
            await kill(sim, subject)
            name = subject.metadata.name
            await sim.until(
                lambda: name not in {m.metadata.name for m in machines(sim)}, within=400
            )
            await sim.until(lambda: sim.running() == FLEET, within=300)
            assert counted(sim) == (0, 0, 0)

    run_virtual(main)


@pytest.mark.parametrize("seed", [25, 26])
def test_crashes_and_lost_answers_keep_no_machine_too_many_and_lose_none(seed: int) -> None:
    async def main() -> None:
        async with Simulation(seed=seed, options=QUICK) as sim:
            await begin(sim)
            sim.faults.lose_answers(probability=0.2, method="PATCH", path="/machines/")
            for victim in machines(sim)[:3]:
                await kill(sim, victim)
                await sim.pass_time(sim.random.uniform(60, 150))
                await sim.crash_manager()
                sim.start_manager()
            sim.faults.clear()
            await sim.until(
                lambda: len(kept(sim)) == MOST and sim.running() == FLEET - MOST, within=1200
            )

    run_virtual(main)


def test_each_set_of_an_update_has_its_own_budget_and_the_update_ends() -> None:
    async def main() -> None:
        async with Simulation(seed=27, options=QUICK) as sim:
            await sim.apply(samples.load())
            await change(sim, {"replicas": FLEET, "autoPreserveFailedMachineMax": 1})
            await sim.until(lambda: sim.running() == FLEET, within=180)
            await sim.pass_time(30)
            await kill(sim, machines(sim)[0])
            await sim.until(lambda: len(kept(sim)) == 1, within=300)
            old = {m.metadata.uid for m in machines(sim)}
            await change(sim, {"template": {"metadata": {"labels": {"rolled": "yes"}}}})
            await sim.until(lambda: not old & {m.metadata.uid for m in machines(sim)}, within=3600)
            await sim.until(lambda: sim.running() == FLEET, within=300)
            assert kept(sim) == []

    run_virtual(main)
