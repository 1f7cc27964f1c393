"""Sets that have far too many machines, frozen and unfrozen by the whole manager."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
)
from mcm.api.meta import JSONObject
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.overshooting_fleet import (
    FROZE,
    IN_PLACE,
    RECREATE,
    ROLLING,
    UNFREEZE,
    UNFROZE,
    Fleet,
    OneSet,
    progress,
    roll,
    shows,
    versions,
)

# ---- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "limit"),
    [(ROLLING, 6), (RECREATE, 5), (IN_PLACE, 6)],
    ids=["rolling", "recreate", "in place"],
)
def test_a_set_is_frozen_at_the_limit_and_unfrozen_one_below(
    strategy: JSONObject, limit: int
) -> None:
    async def main() -> None:
        async with Simulation(seed=1) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3, strategy)
            await fleet.make_too_many(limit - 4)
            await sim.pass_time(90)
            assert fleet.free()
            assert len(fleet.machines()) == limit - 1  # held, all that is surplus leaves
            await fleet.release()
            await sim.until(lambda: len(fleet.machines()) == 3, within=60)

            await fleet.make_too_many(limit - 3)
            await sim.until(fleet.frozen, within=5)
            await sim.pass_time(300)
            assert fleet.frozen()
            await fleet.release(1)
            await sim.until(fleet.free, within=30)
            await fleet.release()
            await sim.until(lambda: len(fleet.machines()) == 3, within=60)
            await sim.pass_time(300)
            assert fleet.told() == {
                FROZE: 1,
                UNFROZE: 1,
                "FrozeMachineDeployment": 1,
                "UnfrozeMachineDeployment": 1,
            }

    run_virtual(main)


def test_a_set_by_itself_is_frozen_at_twice_its_replicas_and_two() -> None:
    async def main() -> None:
        async with Simulation(seed=2) as sim:
            fleet = Fleet(sim)
            await fleet.begin_alone(3)
            await fleet.make_too_many(5)
            await sim.until(fleet.frozen, within=5)
            await sim.pass_time(120)
            assert fleet.frozen()
            assert len(fleet.machines()) == 8
            await fleet.release(1)
            await sim.until(fleet.free, within=30)
            assert fleet.told() == {FROZE: 1, UNFROZE: 1}

    run_virtual(main)


@pytest.mark.parametrize("lossy", [False, True])
def test_scaling_up_and_quickly_far_down_freezes_once_and_unfreezes_once(lossy: bool) -> None:
    """As the original's own integration test has it."""

    async def main() -> None:
        async with Simulation(seed=3) as sim:
            fleet = Fleet(sim)
            await fleet.begin(1)
            if lossy:
                sim.faults.lose_answers(method="PATCH", probability=0.2)
                sim.faults.end_watches(how=WatchEnd.FROZEN, after=5.0, probability=0.3)
            await fleet.scale(6)
            await sim.until(lambda: sim.running() == 6, within=300)
            await fleet.hold()
            await fleet.scale(2)
            await sim.until(fleet.frozen, within=300)
            await sim.pass_time(120)
            sim.faults.clear()
            await fleet.release()
            await sim.until(lambda: len(fleet.machines()) == 2 and fleet.free(), within=300)
            await sim.pass_time(300)
            assert (fleet.told()[FROZE], fleet.told()[UNFROZE]) == (1, 1)

    run_virtual(main)


def test_without_a_margin_a_set_at_its_limit_does_not_flap() -> None:
    options = Options(settings=ControllerSettings(safety_down=0))

    async def main() -> None:
        async with Simulation(seed=4, options=options) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3)
            await fleet.make_too_many(3)
            await sim.until(fleet.frozen, within=5)
            await sim.pass_time(3600)
            assert fleet.frozen()
            assert (fleet.told()[FROZE], fleet.told()[UNFROZE]) == (1, 0)

    run_virtual(main)


# ---- what a freeze keeps away, and how it ends ---------------------------------------------------


async def lacking(fleet: Fleet) -> None:
    """Three machines are wanted, one is there and five leave: two are not made."""
    await fleet.begin(3)
    await fleet.hold()
    await fleet.delete_machines(3)
    await fleet.sim.until(lambda: len(fleet.machines()) == 6, within=30)
    await fleet.sim.until(fleet.frozen, within=5)
    await fleet.hold()
    await fleet.delete_machines(2)
    await fleet.sim.pass_time(300)
    assert (fleet.staying(), len(fleet.machines())) == (1, 6)


def test_a_set_that_lacks_machines_says_why_since_when_and_what_ends_it() -> None:
    async def main() -> None:
        async with Simulation(seed=5) as sim:
            fleet = Fleet(sim)
            await lacking(fleet)
            (condition,) = [c for c in fleet.set.status.conditions if c.type == "Frozen"]
            assert condition.reason == "OverShootingReplicaCount"
            assert condition.last_transition_time is not None
            since = condition.last_transition_time.isoformat().replace("+00:00", "Z")
            assert condition.message == (
                "3 machines wanted, 1 there, 5 leaving; none is made. "
                f"Frozen since {since}: 6 or more machines freeze it, those leaving included. "
                f"Ends when 5 or fewer are left, when the annotation {UNFREEZE} is set here or on "
                "the deployment, or when the label freeze is taken off"
            )
            (of_all,) = [c for c in fleet.deployment.status.conditions if c.type == "Frozen"]
            assert of_all.reason == "OverShootingReplicaCount"
            assert f"{fleet.set.metadata.name}: 3 machines wanted, 1 there" in of_all.message
            shown = await exposed(sim)
            for kind in ("set", "deployment"):
                assert f'mcm_machine_{kind}_status_condition{{condition="Frozen"' in shown
            await fleet.release()
            await sim.until(lambda: sim.running() == 3, within=60)
            assert fleet.free()
            assert 'condition="Frozen"' not in await exposed(sim)

    run_virtual(main)


async def exposed(sim: Simulation) -> str:
    return b"".join(await sim.manager.fleet.exposition()).decode()


async def unfreeze_deployment(fleet: Fleet) -> None:
    await fleet.patch_deployment({"metadata": {"annotations": {UNFREEZE: "true"}}})


async def unfreeze_set(fleet: Fleet) -> None:
    await fleet.patch_set({"metadata": {"annotations": {UNFREEZE: ""}}})


async def take_label_off(fleet: Fleet) -> None:
    await fleet.patch_set({"metadata": {"labels": {"freeze": None}}})


WAYS = pytest.mark.parametrize("way", [unfreeze_deployment, unfreeze_set, take_label_off])


@WAYS
def test_who_unfreezes_a_set_gets_the_machines_it_lacks_and_it_is_frozen_again(way: Any) -> None:
    async def main() -> None:
        async with Simulation(seed=6) as sim:
            fleet = Fleet(sim)
            await lacking(fleet)
            await way(fleet)
            await sim.until(lambda: sim.running() == 3, within=30)
            assert len(fleet.machines()) == 8  # as before, with the two it lacked
            assert fleet.free()
            assert UNFREEZE not in fleet.set.metadata.annotations
            assert UNFREEZE not in fleet.deployment.metadata.annotations
            await sim.until(fleet.frozen, within=61)
            assert (fleet.told()[FROZE], fleet.told()[UNFROZE]) == (2, 1)
            await sim.pass_time(600)
            assert fleet.frozen()
            await fleet.release()
            await sim.until(fleet.free, within=30)
            assert (fleet.told()[FROZE], fleet.told()[UNFROZE]) == (2, 2)

    run_virtual(main)


@WAYS
def test_what_somebody_unfreezes_while_no_manager_runs_is_found_so(way: Any) -> None:
    async def main() -> None:
        async with Simulation(seed=7) as sim:
            fleet = Fleet(sim)
            await lacking(fleet)
            await sim.crash_manager()
            await way(fleet)
            sim.start_manager()
            await sim.pass_time(200)
            assert fleet.frozen()  # too many are left, whoever wanted what
            assert UNFREEZE not in fleet.set.metadata.annotations
            assert UNFREEZE not in fleet.deployment.metadata.annotations
            await fleet.release()
            await sim.until(lambda: sim.running() == 3 and fleet.free(), within=60)

    run_virtual(main)


def test_a_frozen_set_is_scaled_down_and_deleted_all_the_same() -> None:
    async def main() -> None:
        async with Simulation(seed=8) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3)
            await fleet.make_too_many(9)
            await sim.until(fleet.frozen, within=5)
            await fleet.scale(1)
            await sim.until(lambda: fleet.staying() == 1, within=30)
            assert fleet.frozen()
            await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
            await sim.until(lambda: fleet.staying() == 0, within=30)
            await fleet.release()
            kinds = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES)
            await sim.until(lambda: not any(sim.objects(k) for k in kinds), within=60)

    run_virtual(main)


def test_more_replicas_end_a_freeze_at_once() -> None:
    async def main() -> None:
        async with Simulation(seed=9) as sim:
            fleet = Fleet(sim)
            await lacking(fleet)
            await fleet.scale(4)
            await sim.until(lambda: sim.running() == 4, within=60)

    run_virtual(main)


# ---- freezes that others left --------------------------------------------------------------------


def test_a_freeze_by_hand_without_cause_ends_at_once_and_says_so() -> None:
    async def main() -> None:
        async with Simulation(seed=10) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3)
            await fleet.patch_set({"metadata": {"labels": {"freeze": "True"}}})
            await sim.until(fleet.free, within=5)
            await sim.pass_time(10)
            assert fleet.told()[UNFROZE] == 1
            await fleet.patch_deployment({"metadata": {"labels": {"freeze": "True"}}})
            await sim.until(fleet.free, within=5)
            await sim.pass_time(10)
            assert fleet.told()["UnfrozeMachineDeployment"] >= 1
            assert sim.running() == 3

    run_virtual(main)


FROZEN_BY_GO: JSONObject = {
    "type": "Frozen",
    "status": "True",
    "reason": "OverShootingReplicaCount",
    "message": "The number of machines backing MachineSet is 6 >= 6",
    "lastTransitionTime": "2025-12-31T10:00:00Z",
}


@pytest.mark.parametrize("labelled", [True, False], ids=["label", "no label"])
@pytest.mark.parametrize("said", [True, False], ids=["condition", "no condition"])
@pytest.mark.parametrize("too_many", [True, False], ids=["too many", "few"])
def test_whatever_another_manager_left_half_done_is_carried_on(
    labelled: bool, said: bool, too_many: bool
) -> None:
    async def main() -> None:
        async with Simulation(seed=11) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3)
            await sim.crash_manager()
            if too_many:
                await fleet.make_too_many(3)
            if labelled:
                await fleet.patch_set({"metadata": {"labels": {"freeze": "True"}}})
            if said:
                await sim.client.patch(
                    MACHINE_SETS,
                    fleet.set.metadata.name,
                    {"status": {"machineSetCondition": [FROZEN_BY_GO]}},
                    namespace="default",
                    subresource="status",
                )
            sim.start_manager()
            await sim.pass_time(60)
            if not too_many:
                assert fleet.free()
                return
            assert fleet.frozen()
            (condition,) = [c for c in fleet.set.status.conditions if c.type == "Frozen"]
            since = condition.last_transition_time
            assert since is not None
            assert not (labelled and said) or since.hour == 10  # it goes on since then
            await fleet.release(1)
            await sim.until(fleet.free, within=30)

    run_virtual(main)


# ---- rollouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [ROLLING, RECREATE], ids=["rolling", "recreate"])
def test_a_frozen_set_of_the_former_template_keeps_no_update_from_its_end(
    strategy: JSONObject,
) -> None:
    async def main() -> None:
        async with Simulation(seed=12) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3, strategy)
            old = fleet.set.metadata.name
            await fleet.make_too_many(3)
            await sim.until(fleet.frozen, within=5)
            await roll(fleet)
            await sim.pass_time(60)
            await fleet.release()  # the surplus leaves at last
            done = "NewMachineSetAvailable"
            await sim.until(lambda: progress(fleet) == done and sim.running() == 3, within=300)
            assert fleet.free()
            (left,) = [s for s in fleet.sets() if s.metadata.name == old]
            assert (left.spec.replicas, left.status.replicas) == (0, 0)

    run_virtual(main)


def test_an_update_whose_new_set_is_frozen_says_so_and_goes_on_after() -> None:
    async def main() -> None:
        async with Simulation(seed=13) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3)
            await fleet.patch_deployment({"spec": {"progressDeadlineSeconds": 120}})
            old = fleet.set.metadata.name
            await roll(fleet)
            await sim.until(lambda: len(fleet.sets()) == 2, within=10)
            (new,) = [s for s in fleet.sets() if s.metadata.name != old]
            kept = OneSet(sim, new.metadata.name)
            await kept.make_too_many(8)
            await sim.until(lambda: shows(kept.set) == (True, True), within=5)
            await sim.pass_time(200)
            texts = {c.type: c.message for c in fleet.deployment.status.conditions}
            assert new.metadata.name in texts["Frozen"]
            await kept.release()
            await sim.until(lambda: progress(fleet) == "NewMachineSetAvailable", within=300)
            assert fleet.free()

    run_virtual(main)


# ---- what it costs -------------------------------------------------------------------------------


def test_a_fleet_at_rest_frozen_or_not_costs_no_write() -> None:
    settings = ControllerSettings(overshooting_period=timedelta(seconds=5))

    async def main() -> None:
        async with Simulation(seed=14, options=Options(settings=settings)) as sim:
            fleet = Fleet(sim)
            await fleet.begin(3)
            before = versions(sim)
            await sim.pass_time(600)
            assert versions(sim) == before
            await fleet.make_too_many(3)
            await sim.until(fleet.frozen, within=5)
            await sim.pass_time(60)
            before = versions(sim)
            await sim.pass_time(600)
            assert versions(sim) == before

    run_virtual(main)
