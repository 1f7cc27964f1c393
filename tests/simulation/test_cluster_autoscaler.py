"""The cluster autoscaler scales as it likes: the machines go that it chose, and nothing is left."""

from __future__ import annotations

import random

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_TRIGGER_DELETION,
)
from mcm.client.errors import Conflict
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of, phase_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.cluster_autoscaler import ClusterAutoscaler
from tests.thoroughness import part_of


class Departures:
    """Which machines were deleted, and how many were made, since it looks."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.seen: set[str] = set(map(name_of, sim.objects(MACHINES)))
        self.made: set[str] = set()
        self.gone: set[str] = set()
        sim.on_change(MACHINES, self._look)

    def _look(self) -> None:
        present = {name_of(m): m for m in self._sim.objects(MACHINES)}
        self.made |= present.keys() - self.seen
        self.seen |= present.keys()
        leaving = {n for n, m in present.items() if "deletionTimestamp" in meta_of(m)}
        self.gone |= (self.seen - present.keys()) | leaving


def meta_of(obj: JSONObject) -> JSONObject:
    meta = obj["metadata"]
    assert isinstance(meta, dict)
    return meta


def annotations_of(obj: JSONObject) -> JSONObject:
    annotations = meta_of(obj).get("annotations", {})
    assert isinstance(annotations, dict)
    return annotations


def cordoned(sim: Simulation) -> list[str]:
    return [name_of(n) for n in sim.objects(NODES) if _spec_of(n).get("unschedulable")]


def replicas(sim: Simulation) -> int:
    (deployment,) = sim.objects(MACHINE_DEPLOYMENTS)
    return int(str(_spec_of(deployment)["replicas"]))


def _spec_of(obj: JSONObject) -> JSONObject:
    spec = obj["spec"]
    assert isinstance(spec, dict)
    return spec


def is_settled(sim: Simulation) -> bool:
    """As many machines as wanted run, nobody is marked or listed, and no Node is cordoned."""
    (deployment,) = sim.objects(MACHINE_DEPLOYMENTS)
    machines = sim.objects(MACHINES)
    return (
        [phase_of(m) for m in machines] == ["Running"] * replicas(sim)
        and not any(ANNOTATION_MARKED_FOR_DELETION in annotations_of(m) for m in machines)
        and ANNOTATION_TRIGGER_DELETION not in annotations_of(deployment)
        and not cordoned(sim)
    )


async def begin(sim: Simulation, count: int) -> ClusterAutoscaler:
    await sim.apply(samples.load())
    await resize(sim, count)
    await sim.until(lambda: sim.running() == count, within=120)
    await sim.pass_time(5)
    return ClusterAutoscaler(sim, "sample")


async def resize(sim: Simulation, count: int) -> None:
    await change(sim, {"spec": {"replicas": count}})


async def change(sim: Simulation, wanted: JSONObject) -> None:
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", wanted, namespace="default")


async def settle(sim: Simulation, autoscaler: ClusterAutoscaler) -> None:
    for _ in range(30):
        await sim.pass_time(10)
        await autoscaler.round()
        if is_settled(sim):
            return
    raise AssertionError(f"cordoned: {cordoned(sim)}; {sim.describe()}")


def some(sim: Simulation, chance: random.Random, most: int) -> list[str]:
    names = sorted(name_of(m) for m in sim.objects(MACHINES))
    return chance.sample(names, min(len(names), chance.randint(1, most)))


@pytest.mark.parametrize("pause", [0.0, 0.05, 1.0, 30.0])
def test_down_and_up_again_replaces_the_machine_whose_node_was_cordoned(pause: float) -> None:
    async def main() -> None:
        async with Simulation(seed=1) as sim:
            autoscaler = await begin(sim, 5)
            departures = Departures(sim)
            victim = name_of(sim.objects(MACHINES)[2])
            assert await autoscaler.scale_down([victim]) == [victim]
            await sim.pass_time(pause)
            await up(autoscaler, 1)
            await settle(sim, autoscaler)
            assert departures.gone == {victim}
            assert len(departures.made) == 1

    run_virtual(main)


async def up(autoscaler: ClusterAutoscaler, by: int) -> None:
    while True:
        try:
            return await autoscaler.scale_up(by)
        except Conflict:
            continue


def test_one_after_the_other_each_takes_its_own_machine() -> None:
    async def main() -> None:
        async with Simulation(seed=2) as sim:
            autoscaler = await begin(sim, 6)
            departures = Departures(sim)
            for index in (4, 1, 3):
                victim = sorted(map(name_of, sim.objects(MACHINES)))[index]
                await autoscaler.scale_down([victim])
                await autoscaler.scale_down([victim])  # it is listed, or on its way out
                await sim.pass_time(0.2)
            await settle(sim, autoscaler)
            assert departures.gone == autoscaler.marked
            assert len(departures.gone) == 3
            assert departures.made == set()

    run_virtual(main)


def test_to_zero_and_up_again() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            autoscaler = await begin(sim, 2)
            departures = Departures(sim)
            everyone = sorted(map(name_of, sim.objects(MACHINES)))
            assert await autoscaler.scale_down(everyone) == everyone
            await up(autoscaler, 3)
            await settle(sim, autoscaler)
            assert replicas(sim) == 3
            assert departures.gone == set(everyone)
            assert len(departures.made) == 3

    run_virtual(main)


@pytest.mark.parametrize("pause", [0.0, 0.5, 5.0])
def test_the_older_way_of_marking_first_takes_the_same_machine(pause: float) -> None:
    async def main() -> None:
        async with Simulation(seed=4) as sim:
            autoscaler = await begin(sim, 4)
            departures = Departures(sim)
            victim = name_of(sim.objects(MACHINES)[1])
            await autoscaler.scale_down_the_older_way(victim, pause)
            await sim.pass_time(pause)
            await up(autoscaler, 1)
            await settle(sim, autoscaler)
            assert departures.gone == {victim}

    run_virtual(main)


def test_in_a_paused_update_the_chosen_machines_of_old_and_new_sets_go() -> None:
    async def main() -> None:
        async with Simulation(seed=5) as sim:
            autoscaler = await begin(sim, 6)
            await change(sim, {"spec": {"template": {"spec": {"class": {"name": "large"}}}}})
            await sim.until(lambda: 2 <= len(of_class(sim, "large")) <= 4, within=60)
            await change(sim, {"spec": {"paused": True}})
            await sim.pass_time(60)
            departures = Departures(sim)
            old, new = of_class(sim, "small"), of_class(sim, "large")
            assert old
            assert new
            await lift_protection(sim)
            chosen = [old[-1], new[-1]]
            assert await autoscaler.scale_down(chosen) == chosen
            await up(autoscaler, 2)
            await sim.until(lambda: departures.gone >= set(chosen), within=120)
            await sim.pass_time(60)
            assert departures.gone == set(chosen)
            assert not cordoned(sim)

    run_virtual(main)


def of_class(sim: Simulation, klass: str) -> list[str]:
    machines = (m for m in sim.objects(MACHINES) if phase_of(m) == "Running")
    found = (m for m in machines if _spec_of(m)["class"]["name"] == klass)  # type: ignore[index]
    return sorted(map(name_of, found))


async def lift_protection(sim: Simulation) -> None:
    """An administrator lets the autoscaler at Nodes that an update keeps it off."""
    for node in sim.objects(NODES):
        both = dict.fromkeys(
            (ANNOTATION_SCALE_DOWN_DISABLED, ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM)
        )
        await sim.client.patch(NODES, name_of(node), {"metadata": {"annotations": {**both}}})


def test_machines_of_other_deployments_are_nobodys_to_name() -> None:
    async def main() -> None:
        async with Simulation(seed=6) as sim:
            autoscaler = await begin(sim, 2)
            (sample,) = sim.objects(MACHINE_DEPLOYMENTS)
            labels: JSONObject = {"name": "other"}
            template: JSONObject = {
                "metadata": {"labels": labels},
                "spec": {"class": {"kind": "MachineClass", "name": "small"}},
            }
            spec: JSONObject = {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "strategy": _spec_of(sample)["strategy"],
                "template": template,
            }
            meta: JSONObject = {"name": "other", "namespace": "default"}
            kind: JSONObject = {"apiVersion": sample["apiVersion"], "kind": sample["kind"]}
            await sim.apply([{**kind, "metadata": meta, "spec": spec}])
            await sim.until(lambda: sim.running() == 3, within=60)
            departures = Departures(sim)
            (stranger,) = (
                name_of(m)
                for m in sim.objects(MACHINES)
                if meta_of(m)["labels"]["name"] == "other"  # type: ignore[index]
            )
            listed: JSONObject = {ANNOTATION_TRIGGER_DELETION: f"{stranger}~2026-01-01T00:00:30Z"}
            await change(sim, {"metadata": {"annotations": listed}})
            await sim.pass_time(60)
            assert departures.gone == set()
            (sample,) = (d for d in sim.objects(MACHINE_DEPLOYMENTS) if name_of(d) == "sample")
            assert ANNOTATION_TRIGGER_DELETION not in annotations_of(sample)
            assert autoscaler.marked == set()

    run_virtual(main)


SEEDS = part_of(range(16), one_in=4, in_ci=2)
UPDATED_SEEDS = part_of(range(12), one_in=4, in_ci=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_it_does_exactly_those_go_that_it_chose(seed: int) -> None:
    async def main() -> None:
        async with Simulation(seed=seed) as sim:
            chance = random.Random(f"autoscaler {seed}")
            autoscaler = await begin(sim, chance.randint(2, 8))
            departures = Departures(sim)
            if chance.random() < 0.7:
                make_writes_uncertain(sim)
            for _ in range(12):
                await act_on(sim, autoscaler, chance)
                await sim.pass_time(chance.choice([0.0, 0.0, 0.1, 0.5, 3.0, 20.0]))
            sim.faults.clear()
            await settle(sim, autoscaler)
            assert departures.gone == autoscaler.marked, departures.gone ^ autoscaler.marked

    run_virtual(main)


@pytest.mark.parametrize("seed", UPDATED_SEEDS)
def test_while_it_is_updated_paused_and_taken_back_all_it_chose_go_and_nothing_stays_cordoned(
    seed: int,
) -> None:
    async def main() -> None:
        async with Simulation(seed=seed) as sim:
            chance = random.Random(f"autoscaler and updates {seed}")
            autoscaler = await begin(sim, chance.randint(2, 6))
            departures = Departures(sim)
            if chance.random() < 0.5:
                make_writes_uncertain(sim)
            for _ in range(14):
                await (interfere if chance.random() < 0.4 else act_on)(sim, autoscaler, chance)
                await sim.pass_time(chance.choice([0.0, 0.1, 0.5, 3.0, 20.0]))
            sim.faults.clear()
            await change(sim, {"spec": {"paused": False}})
            await settle(sim, autoscaler)
            assert autoscaler.marked <= departures.gone, autoscaler.marked - departures.gone

    run_virtual(main)


async def interfere(sim: Simulation, autoscaler: ClusterAutoscaler, chance: random.Random) -> None:
    """A user updates, goes back, pauses, resumes, or lets the autoscaler at protected Nodes."""
    match chance.randrange(4):
        case 0 | 1:
            klass = chance.choice(["small", "large"])
            await change(sim, {"spec": {"template": {"spec": {"class": {"name": klass}}}}})
        case 2:
            await change(sim, {"spec": {"paused": chance.random() < 0.6}})
        case _:
            await lift_protection(sim)


async def act_on(sim: Simulation, autoscaler: ClusterAutoscaler, chance: random.Random) -> None:
    kind = chance.randrange(20)
    if kind < 8:
        await autoscaler.scale_down(some(sim, chance, 3))
    elif kind < 14:
        await up(autoscaler, chance.randint(1, 3))
    elif kind < 18:
        await autoscaler.round()
    else:
        await sim.crash_manager()
        await sim.pass_time(chance.choice([0.0, 2.0]))
        sim.start_manager()


def make_writes_uncertain(sim: Simulation) -> None:
    writes = "POST|PATCH|DELETE"
    sim.faults.lose_answers(path="machine", probability=0.1)
    sim.faults.answer(409, method="PATCH", path="machine", probability=0.1)
    sim.faults.answer(500, method=writes, path="machine", probability=0.1)
    sim.faults.delay((0.0, 0.5), back=(0.0, 0.5), path="machine")
