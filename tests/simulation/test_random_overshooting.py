"""Sets that get too many machines by chance, and are frozen and unfrozen by everybody at once.

Whatever happened: once it is quiet, what is frozen is what the numbers call for, everything that
shows a freeze agrees, and nothing is written. Once the machines leave, all is as declared.
"""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from mcm.api.machine import MACHINES, MachineSet
from mcm.api.meta import JSONObject
from mcm.client.errors import KubeError
from mcm.controllers.overshooting.limits import Limits, Margins
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.overshooting_fleet import (
    RECREATE,
    ROLLING,
    UNFREEZE,
    Fleet,
    OneSet,
    shows,
    versions,
)
from tests.thoroughness import part_of

SEEDS = part_of(range(20), one_in=4, in_ci=2)
ACTS = 12
PERIOD = 20.0


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_sets_end_up_frozen_as_their_machines_call_for(seed: int) -> None:
    chance = random.Random(f"overshooting {seed}")
    up, down = chance.randint(0, 3), chance.randint(0, 3)
    settings = ControllerSettings(
        safety_up=up, safety_down=down, overshooting_period=timedelta(seconds=PERIOD)
    )
    strategy, surge = chance.choice([(ROLLING, 1), (RECREATE, 0)])

    async def main() -> None:
        async with Simulation(seed=seed, options=Options(settings=settings)) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3, strategy)
            make_the_network_bad(sim)
            for _ in range(ACTS):
                await act(fleet, chance)
                await sim.pass_time(chance.uniform(0, 15))
            sim.faults.clear()
            await sim.until(lambda: no_request_is_left(fleet), within=300)
            await sim.pass_time(400)  # back-offs, dead watches, and what was spared, are over

            limits = Margins(up, down).of_deployment(fleet.deployment.spec.replicas, surge)
            assert_as_called_for(fleet, limits)
            before = versions(sim)
            await sim.pass_time(3 * PERIOD)
            assert versions(sim) == before
            await let_go(fleet)
            await sim.until(lambda: as_declared(fleet), within=1800, what="as declared")
            await sim.pass_time(3 * PERIOD)
            assert fleet.free()

    run_virtual(main)


def make_the_network_bad(sim: Simulation) -> None:
    sim.faults.lose_answers(path="machine", probability=0.05)
    sim.faults.answer(409, method="PATCH", path="machine", probability=0.05)
    sim.faults.answer(500, method="POST|PATCH", path="machine", probability=0.05)
    sim.faults.delay((0.0, 0.5), back=(0.0, 0.5), path="machine")
    sim.faults.end_watches(how=WatchEnd.FROZEN, after=20.0, probability=0.1)
    sim.faults.end_watches(how=WatchEnd.TORN, events=20, probability=0.2)


async def act(fleet: Fleet, chance: random.Random) -> None:
    sets = [s.metadata.name for s in fleet.sets() if s.metadata.deletion_timestamp is None]
    name = chance.choice(sets)
    match chance.randrange(10):
        case 0:
            await fleet.scale(chance.randint(0, 6))
        case 1:
            class_: JSONObject = {"name": chance.choice(["small", "large"])}
            await fleet.patch_deployment({"spec": {"template": {"spec": {"class": class_}}}})
        case 2 | 3:
            one = OneSet(fleet.sim, name)
            one.made_by_others = fleet.made_by_others
            await one.make_too_many(chance.randint(1, 8))
            fleet.made_by_others = one.made_by_others
        case 4:
            await fleet.hold()
            await fleet.delete_machines(chance.randint(1, 4))
        case 5:
            await fleet.release(chance.randint(1, 5))
        case 6:
            label = chance.choice(["True", None])
            change: JSONObject = {"metadata": {"labels": {"freeze": label}}}
            if chance.random() < 0.5:
                await fleet.patch_deployment(change)
            else:
                await fleet.patch_set(change, name)
        case 7:
            asked: JSONObject = {"metadata": {"annotations": {UNFREEZE: "true"}}}
            if chance.random() < 0.5:
                await fleet.patch_deployment(asked)
            else:
                await fleet.patch_set(asked, name)
        case 8:
            await fleet.sim.crash_manager()
            await fleet.sim.pass_time(chance.uniform(0, 20))
            fleet.sim.start_manager()
        case _:
            fleet.sim.faults.cut_watches(chance.choice(list(WatchEnd)))


def no_request_is_left(fleet: Fleet) -> bool:
    metas = [fleet.deployment.metadata, *(s.metadata for s in fleet.sets())]
    return not any(UNFREEZE in meta.annotations for meta in metas)


def assert_as_called_for(fleet: Fleet, limits: Limits) -> None:
    for machine_set in fleet.sets():
        label, said = shows(machine_set)
        assert label == said, machine_set.status.conditions
        count = machines_of(fleet, machine_set)
        assert label or count < limits.freeze_at, (count, limits)
        assert not label or count > limits.unfreeze_at, (count, limits)
    frozen = any(shows(s)[0] for s in fleet.sets())
    assert shows(fleet.deployment) == (frozen, frozen)


def machines_of(fleet: Fleet, machine_set: MachineSet) -> int:
    refs = (m.metadata.controller_ref() for m in fleet.machines())
    return sum(ref is not None and ref.uid == machine_set.metadata.uid for ref in refs)


async def let_go(fleet: Fleet) -> None:
    """Take every hold off, so that all that leaves is gone soon."""
    for machine in fleet.machines():
        try:
            await fleet.unhold(machine)
        except KubeError:
            continue  # gone meanwhile


def as_declared(fleet: Fleet) -> bool:
    wanted = fleet.deployment.spec.replicas
    machines = fleet.sim.objects(MACHINES)
    return len(machines) == wanted == fleet.sim.running() and fleet.free()
