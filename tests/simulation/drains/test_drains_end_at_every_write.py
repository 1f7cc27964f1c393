"""The manager ends at each write of a drain, or loses its answer: nothing is asked twice, nothing
is forgotten, and volumes leave one after the other."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import count
from typing import Final

import pytest

from mcm.api.machine import MACHINES
from mcm.controllers.settings import ControllerSettings
from mcm.options import LeaderElection, Options
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.drains.ledger import DrainLedger
from tests.simulation.drains.stage import (
    NAMESPACE,
    app,
    budget,
    fleet,
    gather,
    is_gone,
    is_running,
    machine,
    stateful,
)
from tests.simulation.ends_of_the_manager import ending
from tests.thoroughness import THOROUGH, part_of

OPTIONS: Final = Options(
    leader_election=LeaderElection(enabled=False),
    settings=ControllerSettings(drain_timeout=timedelta(minutes=10)),
)
APPS: Final = ("web", "held", "both", "db")
PATIENCE: Final = 120.0
AWAY: Final = 2.0
"""Seconds that it takes the manager to begin anew."""
LEAST: Final = 20
"""So many writes there are at least, or the drain was not what it claims to be."""
STEP: Final = 6 if THOROUGH else 12
"""One write in so many: all of them take minutes."""


@pytest.mark.parametrize(
    ("first", "arrived"),
    part_of([(1, True), (2, False)], one_in=2),
)
def test_the_manager_may_end_at_any_write_of_a_drain(first: int, *, arrived: bool) -> None:
    async def main() -> None:
        async with Simulation(seed=3, options=OPTIONS) as sim:
            ledger = await begin(sim)
            for number in count(first, STEP):
                name = f"victim-{number}"
                await prepare(sim, name, maxEvictRetries=6)
                async with ending(sim, number, arrived=arrived) as end:
                    began = sim.clock.monotonic()
                    await sim.client.delete(MACHINES, name, namespace=NAMESPACE)
                    await sim.until(partial(is_gone, sim, name), within=400)
                check(ledger, name, began)
                if not end.came:
                    break
            assert number > LEAST

    run_virtual(main)


async def begin(sim: Simulation) -> DrainLedger:
    ledger = DrainLedger(sim, OPTIONS.settings)
    await sim.apply(fleet(2))
    await sim.until(lambda: sim.running() == 2, within=60)
    await sim.apply(
        [
            app("web", 3),
            budget("web", maxUnavailable=1),
            app("held", 1),
            budget("held", maxUnavailable=0),
            app("both", 1),
            budget("both", maxUnavailable=1),
            budget("both-too", "both", maxUnavailable=1),
            stateful("db", 3),
        ]
    )
    return ledger


async def prepare(sim: Simulation, name: str, **spec: object) -> None:
    await sim.apply([machine(name, **spec)])
    await sim.until(lambda: is_running(sim, name), within=60)
    await gather(sim, name, APPS)


def check(ledger: DrainLedger, name: str, began: float) -> None:
    assert not ledger.broken, ledger.broken
    assert not [uid for uid, times in ledger.accepted().items() if times > 1]
    assert name not in ledger.forced
    for prefix in ("held", "both"):
        asked = [a for a in ledger.by_pod(f"default/{prefix}-") if a.at >= began]
        assert {a.verb for a in asked} == {"delete"}
        assert PATIENCE - 1 <= asked[0].at - began <= PATIENCE + AWAY
