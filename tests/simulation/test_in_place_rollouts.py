"""Deployments that update their machines in place, with the whole manager and imitated agents."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from mcm.api.machine import MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.in_place import Agents, InPlaceFleet

Scenario = Callable[[Simulation, InPlaceFleet, Agents], Awaitable[None]]


def play(scenario: Scenario, *, replicas: int = 10, seed: int = 3) -> None:
    async def main() -> None:
        async with Simulation(seed=seed) as sim:
            agents, fleet = Agents(sim), InPlaceFleet(sim, replicas)
            working = asyncio.create_task(agents.run())
            try:
                await scenario(sim, fleet, agents)
            finally:
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working
            assert fleet.violations == []

    run_virtual(main)


@pytest.mark.parametrize(
    ("surge", "unavailable", "at_once"),
    [(0, 1, 1), (0, 3, 3), (2, 0, 2), (1, 2, 3), ("25%", "25%", 5), (0, 0, 1), (0, "100%", 10)],
)
def test_ten_machines_are_updated_within_the_limits(
    surge: int | str, unavailable: int | str, at_once: int
) -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=surge, unavailable=unavailable)
        before = fleet.names()
        extra = {"25%": 3}.get(str(surge)) or int(surge)
        lowest = 10 - max(at_once - extra, 0)
        fleet.keep_within(floor=lowest, ceiling=10 + extra)
        await fleet.update("b")
        await sim.until(lambda: fleet.is_whole("b"), within=3600, what="all are updated")
        await sim.pass_time(60)
        assert len(fleet.names() & before) == 10 - extra
        assert fleet.least_seen == lowest, "as many at once as may be"
        assert set(agents.worked.values()) == {1}
        assert fleet.leftovers() == []
        assert await fleet.progressing() == (
            "NewMachineSetAvailable",
            next(
                f'MachineSet "{n}" has successfully progressed.'
                for n, s in fleet.sizes().items()
                if s
            ),
        )
        await sim.pass_time(600)
        written = sim.server.requests.writes(agent="mcm")
        await sim.pass_time(3600)
        assert sim.server.requests.writes(agent="mcm") == written

    play(scenario)


def test_progress_is_told_of_with_each_machine() -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=0, unavailable=1)
        await fleet.change(progressDeadlineSeconds=600)
        await fleet.update("b")
        await sim.pass_time(2)
        assert [s for s in sim.objects(MACHINE_SETS) if "replicas" not in _spec(s)] == []
        for done in (1, 2):
            await sim.until(lambda n=done: fleet.versions()["b"] == n, within=600)  # type: ignore[misc]
            await sim.pass_time(2)
            assert (await fleet.progressing())[0] == "MachineSetUpdated"
        await sim.until(lambda: fleet.is_whole("b"), within=600)

    play(scenario, replicas=3)


def _spec(obj: JSONObject) -> JSONObject:
    spec = obj["spec"]
    assert isinstance(spec, dict)
    return spec


def test_one_failing_agent_is_told_of_and_its_machine_is_replaced() -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=0, unavailable=2)
        before = fleet.names()
        unlucky = fleet.nodes()[0]
        agents.failing[unlucky] = "kubelet did not start"
        fleet.keep_within(floor=3, ceiling=5)
        await fleet.update("b")
        await sim.until(lambda: "InPlaceUpdateFailed" in sim.phases(), within=600)
        await sim.pass_time(2)
        message = (await fleet.progressing())[1]
        assert "1 update failed" in message and "kubelet did not start" in message
        assert "update-result" in message, "what ends it"
        await sim.until(lambda: fleet.is_whole("b"), within=1800, what="it is replaced")
        assert len(fleet.names() & before) == 4
        await sim.pass_time(60)
        assert fleet.leftovers() == []
        assert "failed" not in (await fleet.progressing())[1]

    play(scenario, replicas=5)


def test_a_failed_update_that_is_tried_again_keeps_its_machine() -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=0, unavailable=1)
        before = fleet.names()
        unlucky = fleet.nodes()[0]
        agents.failing[unlucky] = "no space left"
        await fleet.update("b")
        await sim.until(lambda: "InPlaceUpdateFailed" in sim.phases(), within=600)
        agents.failing.clear()
        await fleet.label(unlucky, {LABEL_UPDATE_RESULT: None})
        await sim.until(lambda: fleet.is_whole("b"), within=1200)
        assert fleet.names() == before
        assert agents.worked[unlucky] == 2

    play(scenario, replicas=3)


def test_the_manager_may_end_anywhere() -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=1, unavailable=1)
        before = fleet.names()
        fleet.keep_within(floor=4, ceiling=6)
        await fleet.update("b")
        for number in range(12):
            sim.faults.answer(409, method="PATCH", path="/(nodes|machinesets|machines)/", times=2)
            sim.faults.lose_answers(method="PATCH", times=2)
            await sim.pass_time(3 + 2.3 * number)
            await sim.crash_manager()
            await sim.pass_time(1)
            sim.start_manager()
        await sim.until(lambda: fleet.is_whole("b"), within=3600)
        assert len(fleet.names() & before) == 4
        assert set(agents.worked.values()) == {1}
        await sim.pass_time(90)
        assert fleet.leftovers() == []

    play(scenario, replicas=5)


def test_reverting_updates_back_what_was_updated_and_leaves_the_others_alone() -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=0, unavailable=2)
        await fleet.update("a")  # so that there is something to go back to
        await sim.until(lambda: fleet.is_whole("a"), within=1800)
        before, agents.worked = fleet.names(), Counter()
        fleet.keep_within(floor=4, ceiling=6)
        await fleet.update("b")
        await sim.until(lambda: fleet.versions()["b"] == 2, within=600)
        await sim.until(lambda: len(fleet.with_agents()) == 2, within=600)
        asked = fleet.with_agents()
        await fleet.update("a")
        await sim.until(lambda: fleet.is_whole("a"), within=1800, what="all are back")
        assert fleet.names() == before
        assert sorted(agents.worked.values()) == [2, 2, 2, 2], "two done, two that were asked"
        assert all(agents.worked[name] == 2 for name in asked)
        await sim.pass_time(60)
        assert fleet.leftovers() == []
        fleet.keep_within(floor=6, ceiling=7)
        await fleet.change(replicas=7)
        fleet.replicas = 7
        await sim.until(lambda: fleet.is_whole("a"), within=300, what="the set makes machines")

    play(scenario, replicas=6)


@pytest.mark.parametrize("replicas", [3, 8])
def test_replicas_change_in_the_middle(replicas: int) -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=1, unavailable=1)
        fleet.keep_within(floor=min(4, replicas - 1), ceiling=max(6, replicas + 1))
        await fleet.update("b")
        await sim.until(lambda: fleet.versions()["b"] >= 2, within=600)
        await fleet.change(replicas=replicas)
        fleet.replicas = replicas
        await sim.until(lambda: fleet.is_whole("b"), within=1800)
        await sim.pass_time(60)
        assert fleet.leftovers() == []

    play(scenario, replicas=5)


def test_people_select_machines_one_by_one() -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=2, unavailable=1, how="Manual")
        before = fleet.names()
        fleet.keep_within(floor=2, ceiling=4)
        await fleet.update("b")
        await sim.pass_time(120)
        assert fleet.versions() == {"": 3}, "nobody was selected, and there is no surge"
        assert "3 machines wait for the label" in (await fleet.progressing())[1]
        for number, node in enumerate(fleet.nodes(), 1):
            await fleet.label(node, {LABEL_SELECTED_FOR_UPDATE: "true"})
            await sim.until(lambda: sim.running() == 2, within=60)
            await sim.until(lambda: sim.running() == 3, within=300)
            assert fleet.versions()["b"] == number
            if number == 2:
                await fleet.change(replicas=4)
                await sim.until(lambda: sim.running() == 4, within=60, what="one of the new kind")
                fleet.replicas = 4
                break
        last = next(n for n in fleet.nodes() if not fleet.is_of_version(n, "b"))
        await fleet.label(last, {LABEL_SELECTED_FOR_UPDATE: "true"})
        await sim.until(lambda: fleet.is_whole("b"), within=300)
        assert before < fleet.names()
        await sim.pass_time(60)
        assert fleet.leftovers() == []

    play(scenario, replicas=3)


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
def test_another_strategy_in_the_middle_clears_what_the_update_left(strategy: str) -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=0, unavailable=1)
        await fleet.update("b")
        await sim.until(lambda: fleet.versions()["b"] == 1, within=600)
        await sim.until(lambda: len(fleet.with_agents()) == 1, within=600)
        limits = {"maxSurge": 1, "maxUnavailable": 1} if strategy == "RollingUpdate" else None
        changed: JSONObject = {"type": strategy, "rollingUpdate": limits, "inPlaceUpdate": None}
        await fleet.change(strategy=changed)
        await sim.until(lambda: fleet.is_whole("b"), within=1200)
        await sim.pass_time(60)
        assert fleet.leftovers() == []
        await fleet.change(replicas=5)
        fleet.replicas = 5
        await sim.until(lambda: fleet.is_whole("b"), within=300)
        block: JSONObject = {"maxSurge": 0, "maxUnavailable": 2, "orchestrationType": "Auto"}
        back: JSONObject = {
            "type": "InPlaceUpdate",
            "rollingUpdate": None,
            "inPlaceUpdate": block,
        }
        before = fleet.names()
        await fleet.change(strategy=back)
        await fleet.update("c")
        await sim.until(lambda: fleet.is_whole("c"), within=1200)
        assert fleet.names() == before

    play(scenario, replicas=4)


def test_a_pause_lets_what_was_begun_come_home() -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=0, unavailable=2)
        await fleet.update("b")
        await sim.until(lambda: len(fleet.with_agents()) == 2, within=600)
        await fleet.change(paused=True)
        await sim.until(lambda: fleet.versions()["b"] == 2 and sim.running() == 4, within=300)
        await sim.pass_time(300)
        assert fleet.versions()["b"] == 2
        assert (await fleet.progressing())[0] == "DeploymentPaused"
        written = sim.server.requests.writes(agent="mcm")
        await sim.pass_time(1800)
        assert sim.server.requests.writes(agent="mcm") == written
        await fleet.change(paused=False)
        await sim.until(lambda: fleet.is_whole("b"), within=600)
        await sim.pass_time(60)
        assert fleet.leftovers() == []

    play(scenario, replicas=4)


def test_an_old_machine_that_dies_is_replaced_by_one_of_the_new_kind() -> None:
    async def scenario(sim: Simulation, fleet: InPlaceFleet, agents: Agents) -> None:
        await fleet.begin(surge=0, unavailable=1, how="Manual")
        await fleet.update("b")
        await sim.pass_time(30)
        victim = sorted(fleet.names())[0]
        await sim.client.delete(MACHINES, victim, namespace="default")
        await sim.until(
            lambda: sim.running() == 3 and fleet.versions() == {"": 2, "b": 1}, within=300
        )
        assert victim not in fleet.names()

    play(scenario, replicas=3)
