"""A rollout to a class that never works, and a VM lost meanwhile: the old class comes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.controllers.settings import ControllerSettings
from mcm.events import CORE_EVENTS, EVENTS
from mcm.options import Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

MINUTES = 60.0
REFUSED: JSONObject = {
    "failures": [
        {"verb": "create", "code": "InvalidArgument", "message": "no image", "probability": 1.0}
    ]
}
EXHAUSTED: JSONObject = {
    "failures": [
        {"verb": "create", "code": "Unavailable", "message": "try later", "probability": 1.0}
    ]
}
NEVER_JOINS: JSONObject = {"joins": False}
WAYS = [(1, 0), (0, 1)]
BROKEN = pytest.mark.parametrize(
    "broken", [REFUSED, EXHAUSTED, NEVER_JOINS], ids=["refused", "unavailable", "never joins"]
)


@pytest.mark.parametrize(("surge", "unavailable"), WAYS)
@BROKEN
def test_taking_the_template_back_ends_it_though_a_vm_was_lost(
    surge: int, unavailable: int, broken: JSONObject
) -> None:
    async def main() -> None:
        async with Simulation(seed=3, options=options()) as sim:
            await begin_broken_rollout(sim, surge, unavailable, broken)
            lost = await lose_a_vm(sim)
            await declare(sim, "small")
            await sim.until(
                lambda: classes(sim) == ["small"] * 3 and sim.running() == 3,
                within=30 * MINUTES,
            )
            assert lost not in machines(sim)

    run_virtual(main)


@pytest.mark.parametrize(("surge", "unavailable"), WAYS)
@BROKEN
def test_what_is_lost_is_replaced_while_the_rollout_is_stuck(
    surge: int, unavailable: int, broken: JSONObject
) -> None:
    async def main() -> None:
        async with Simulation(seed=3, options=options()) as sim:
            await begin_broken_rollout(sim, surge, unavailable, broken)
            lost = await lose_a_vm(sim)
            serving = 3 - unavailable
            await sim.until(
                lambda: lost not in machines(sim) and sim.running() == serving,
                within=45 * MINUTES,
            )
            assert classes(sim).count("small") == serving

    run_virtual(main)


@pytest.mark.parametrize(("surge", "unavailable"), [*WAYS, (1, 1)])
def test_the_stop_is_told_in_the_machines_own_words_and_ends_with_its_cause(
    surge: int, unavailable: int
) -> None:
    async def main() -> None:
        async with Simulation(seed=4, options=options()) as sim:
            await begin_broken_rollout(sim, surge, unavailable, REFUSED)
            since = progressing(sim)
            assert (since["status"], since["reason"]) == ("False", "NewMachinesFailing")
            assert "InvalidArgument" in str(since["message"])
            assert "no image" in str(since["message"])
            assert events(sim, "NewMachinesFailing") == 1
            serving = sim.running()
            assert serving >= 3 - unavailable
            await sim.pass_time(45 * MINUTES)
            assert sim.running() == serving
            assert progressing(sim)["lastTransitionTime"] == since["lastTransitionTime"]
            assert events(sim, "NewMachinesFailing") == 1
            mended: JSONObject = {"providerSpec": {"failures": []}}
            await sim.client.patch(MACHINE_CLASSES, "large", mended, namespace="default")
            await sim.until(
                lambda: classes(sim) == ["large"] * 3 and sim.running() == 3, within=30 * MINUTES
            )
            await sim.pass_time(10)
            assert progressing(sim)["reason"] == "NewMachineSetAvailable"
            assert not any("failing-since" in str(s) for s in sim.objects(MACHINE_SETS))

    run_virtual(main)


# ---- what is done, and looked at -----------------------------------------------------------------


def options() -> Options:
    settings = replace(ControllerSettings(), drain_timeout=timedelta(minutes=1))
    return replace(Options(), settings=settings)


def manifests(surge: int, unavailable: int, broken: JSONObject) -> list[JSONObject]:
    objects = samples.load()
    for obj in objects:
        if obj["kind"] == "MachineClass" and name_of(obj) == "large":
            obj["providerSpec"] = {**obj["providerSpec"], **broken}  # type: ignore[dict-item]
        if obj["kind"] == "MachineDeployment":
            block: JSONObject = {"maxSurge": surge, "maxUnavailable": unavailable}
            obj["spec"]["strategy"]["rollingUpdate"] = block  # type: ignore[index]
            del obj["spec"]["template"]["spec"]["healthTimeout"]  # type: ignore[index]
    return objects


async def begin_broken_rollout(
    sim: Simulation, surge: int, unavailable: int, broken: JSONObject
) -> None:
    await sim.apply(manifests(surge, unavailable, broken))
    await sim.until(lambda: sim.running() == 3, within=2 * MINUTES)
    await declare(sim, "large")
    await sim.until(lambda: "large" in classes(sim), within=5 * MINUTES)
    await sim.pass_time(2 * MINUTES)


async def declare(sim: Simulation, class_: str) -> None:
    patch: JSONObject = {"spec": {"template": {"spec": {"class": {"name": class_}}}}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", patch, namespace="default")


async def lose_a_vm(sim: Simulation) -> str:
    """Switch a VM of the old class off; return its machine's name."""
    lost = min(n for n, class_ in machines(sim).items() if class_ == "small")
    patch: JSONObject = {"spec": {"powerState": "Off"}}
    await sim.client.patch(VIRTUAL_MACHINES, lost, patch, namespace="default")
    await sim.until(lambda: sim.phases()["Unknown"] == 1, within=2 * MINUTES)
    return lost


def machines(sim: Simulation) -> dict[str, str]:
    """The class of each machine, by name."""
    return {
        name_of(m): str(m["spec"]["class"]["name"])  # type: ignore[index]
        for m in sim.objects(MACHINES)
    }


def classes(sim: Simulation) -> list[str]:
    return sorted(machines(sim).values())


def progressing(sim: Simulation) -> JSONObject:
    return condition(sim, "Progressing")


def condition(sim: Simulation, kind: str) -> JSONObject:
    (deployment,) = sim.objects(MACHINE_DEPLOYMENTS)
    found: list[JSONObject] = deployment["status"]["conditions"]  # type: ignore[index]
    return next(c for c in found if c["type"] == kind)


def events(sim: Simulation, reason: str) -> int:
    return sum(e["reason"] == reason for e in (*sim.objects(EVENTS), *sim.objects(CORE_EVENTS)))
