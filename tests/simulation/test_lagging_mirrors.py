"""What the manager sees is seconds old all through a rollout; its promises hold all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import pytest

from mcm.api.meta import JSONObject
from mcm.simulation.faults import WatchEnd
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.machine_ledger import leftovers
from tests.simulation.rollout_stage import RECREATE, in_place, rolling, staged, writes
from tests.thoroughness import part_of

KINDS = ("machines", "machinesets", "machinedeployments", "nodes", "virtualmachines")
LAGS = [
    ("|".join(KINDS), 4.0, True),
    ("machines|nodes", 9.0, False),
    ("machinesets|machinedeployments", 9.0, False),
]
"""Which mirrors lag, by how many seconds, and whether one manager comes after the other."""


@final
@dataclass(frozen=True, slots=True)
class Rollout:
    """One of three machines: its limits, and how many are made for it."""

    strategy: JSONObject
    most: int
    fewest: int
    made: int


ROLLOUTS = {
    "rolling 1-0": Rollout(rolling(1, 0), 4, 3, 3),
    "rolling 0-1": Rollout(rolling(0, 1), 3, 2, 3),
    "recreate": Rollout(RECREATE, 3, 0, 3),
    "in place 0-1": Rollout(in_place(0, 1), 3, 2, 0),
    "in place 1-0": Rollout(in_place(1, 0), 4, 3, 1),
}


@pytest.mark.parametrize(("kinds", "lag", "takeovers"), part_of(LAGS, one_in=3))
@pytest.mark.parametrize("name", part_of(list(ROLLOUTS), one_in=3))
def test_no_promise_is_broken_while_mirrors_lag(
    name: str, kinds: str, lag: float, *, takeovers: bool
) -> None:
    rollout = ROLLOUTS[name]

    async def main() -> None:
        async with staged(seed=41) as stage:
            sim, ledger = stage.sim, stage.ledger
            await stage.begin(3, rollout.strategy)
            sim.faults.delay_events(lag, path=f"/({kinds})$")
            sim.faults.cut_watches(WatchEnd.CLOSED)
            await sim.pass_time(2 * lag)
            ledger.begin(most=rollout.most, fewest=rollout.fewest)
            await stage.update("b")
            if takeovers:
                for pause in (1.0, 3.0, 7.0, 12.0):
                    await sim.pass_time(pause)
                    await sim.stop_manager() if pause in (3.0, 12.0) else None
                    await sim.crash_manager()
                    sim.start_manager()
                    await sim.pass_time(16)
            await stage.until(stage.is_whole, within=1800)
            await stage.until(lambda: leftovers(sim) == [], within=120)
            assert ledger.broken == []
            assert (len(ledger.made), len(ledger.gone)) == (rollout.made, rollout.made)
            assert set(stage.agents.worked.values()) <= {1}
            await sim.pass_time(3 * lag)
            written = writes(sim)
            await sim.pass_time(600)
            assert writes(sim) == written

    run_virtual(main)
