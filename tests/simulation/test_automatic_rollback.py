"""A rollout that fails goes back by itself where that is asked for: once, and never to and fro."""

from __future__ import annotations

import pytest

from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS
from mcm.api.meta import JSONObject
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.test_way_out_of_a_broken_rollout import (
    MINUTES,
    REFUSED,
    begin_broken_rollout,
    classes,
    condition,
    declare,
    events,
    options,
)

AFTER = "deployment.machine.sapcloud.io/rollback-after"


@pytest.mark.parametrize("trouble", ["", "the answer is lost", "the manager crashes"])
def test_a_rollout_that_fails_for_long_enough_is_rolled_back_once(trouble: str) -> None:
    async def main() -> None:
        async with Simulation(seed=6, options=options()) as sim:
            await begin_broken_rollout(sim, 1, 0, REFUSED)
            await annotate(sim, "10m")
            if trouble == "the answer is lost":
                sim.faults.lose_answers(method="PATCH", path="/machinedeployments/sample$", times=1)
            await sim.pass_time(5 * MINUTES)
            assert declared(sim) == "large"
            if trouble == "the manager crashes":
                await sim.crash_manager()
                sim.start_manager()
            await sim.until(lambda: declared(sim) == "small", within=6 * MINUTES)
            await sim.until(lambda: classes(sim) == ["small"] * 3, within=5 * MINUTES)
            await sim.pass_time(5)
            told = condition(sim, "RolledBack")
            assert (told["status"], told["reason"]) == ("True", "NewMachinesFailing")
            assert "from revision 2" in str(told["message"])
            assert "no image" in str(told["message"])
            assert "meanwhile" not in str(told["message"]), "that time is over"
            assert condition(sim, "Progressing")["reason"] == "NewMachineSetAvailable"
            assert events(sim, "AutomaticRollback") <= 1
            assert events(sim, "NewMachinesFailing") <= 1

    run_virtual(main)


def test_from_what_was_restored_it_goes_no_further_and_its_user_may_try_again() -> None:
    async def main() -> None:
        async with Simulation(seed=6, options=options()) as sim:
            await begin_broken_rollout(sim, 1, 0, REFUSED)
            await annotate(sim, "10m")
            await sim.until(lambda: declared(sim) == "small", within=15 * MINUTES)
            await sim.until(lambda: classes(sim) == ["small"] * 3, within=5 * MINUTES)
            await declare(sim, "large")  # its user insists, and it fails again
            await sim.until(lambda: "large" in classes(sim), within=1 * MINUTES)
            await sim.until(lambda: declared(sim) == "small", within=15 * MINUTES)
            mended: JSONObject = {"providerSpec": {"failures": []}}
            await sim.client.patch(MACHINE_CLASSES, "large", mended, namespace="default")
            await declare(sim, "large")
            await sim.until(
                lambda: classes(sim) == ["large"] * 3 and sim.running() == 3, within=15 * MINUTES
            )
            await sim.pass_time(30 * MINUTES)
            assert declared(sim) == "large"
            with pytest.raises(StopIteration):
                condition(sim, "RolledBack")

    run_virtual(main)


@pytest.mark.parametrize("why", ["nobody asked for it", "it is paused", "nobody can read it"])
def test_it_stays_declared(why: str) -> None:
    async def main() -> None:
        async with Simulation(seed=6, options=options()) as sim:
            await begin_broken_rollout(sim, 1, 0, REFUSED)
            if why == "it is paused":
                paused: JSONObject = {"spec": {"paused": True}}
                await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", paused, namespace="default")
            if why != "nobody asked for it":
                await annotate(sim, "soon" if why == "nobody can read it" else "1m")
            await sim.pass_time(40 * MINUTES)
            assert declared(sim) == "large"

    run_virtual(main)


async def annotate(sim: Simulation, after: str) -> None:
    patch: JSONObject = {"metadata": {"annotations": {AFTER: after}}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", patch, namespace="default")


def declared(sim: Simulation) -> str:
    (deployment,) = sim.objects(MACHINE_DEPLOYMENTS)
    return str(deployment["spec"]["template"]["spec"]["class"]["name"])  # type: ignore[index]
