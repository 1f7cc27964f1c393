"""Deployments that update their machines in place, with the whole manager and imitated agents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.in_place import Agents, InPlaceFleet

Scenario = Callable[[Simulation, InPlaceFleet, Agents], Awaitable[None]]


def play(scenario: Scenario, *, replicas: int = 10, seed: int = 3) -> None:
    async def main() -> None:
        async with Simulation(seed=seed) as sim:
            agents = Agents(sim)
            working = asyncio.create_task(agents.run())
            try:
                await scenario(sim, InPlaceFleet(sim, replicas), agents)
            finally:
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working

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
