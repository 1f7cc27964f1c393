"""Whatever happens to Nodes that are drained: no promise is broken, and every machine goes."""

from __future__ import annotations

import logging
import random
from collections import Counter
from typing import Any, Final

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.names import (
    ANNOTATION_DRAIN_RECORD,
    CONDITION_DRAINED,
    TAINT_OUT_OF_SERVICE,
)
from mcm.drain.plan import PassPlan
from mcm.drain.selection import Arrangement
from mcm.drain.volumes import Lanes
from mcm.events import EVENTS
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.drains.history import OPTIONS, DrainHistory
from tests.thoroughness import part_of

SEEDS: Final = part_of(range(4), one_in=4)
TROUBLES: Final = 10
BOUND: Final = 330.0
"""Seconds after its deadline in which a machine is gone: volumes have to be detached, and requests
that fail are made again later and later."""
MOST_REQUESTS: Final = 25


@pytest.mark.parametrize("seed", SEEDS)
def test_every_drain_keeps_its_promises_and_ends(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    run_virtual(lambda: live(seed))
    assert not [r.getMessage() for r in caplog.records if r.exc_info], f"seed {seed}"


@pytest.mark.parametrize("promise", part_of(["lanes", "waves", "quiet"], one_in=3))
def test_a_promise_that_is_not_kept_is_found(promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match promise:
        case "lanes":
            monkeypatch.setattr(Lanes, "admits", lambda *_: True)
        case "waves":
            every = property(lambda arrangement: sum(arrangement.waves, ()))
            monkeypatch.setattr(Arrangement, "due", every)
            monkeypatch.setattr(Arrangement, "later", ())
        case "quiet":
            asked = property(lambda plan: not plan.actions)
            monkeypatch.setattr(PassPlan, "finished", asked)
    assert any(_goes_wrong(seed) for seed in range(10)), f"nobody noticed: {promise}"


def _goes_wrong(seed: int) -> bool:
    try:
        run_virtual(lambda: live(seed))
    except AssertionError:
        return True
    return False


async def live(seed: int) -> None:
    """Live through the history of ``seed``. Raises AssertionError for all that goes wrong in it."""
    async with Simulation(seed=seed, options=OPTIONS, heartbeat_interval=20, node_grace=60) as sim:
        history = DrainHistory(sim, random.Random(f"drain {seed}"))
        try:
            await history.begin()
            for _ in range(TROUBLES):
                await history.trouble()
                await sim.pass_time(history.chance.choice((0, 1, 3, 10, 30, 60)))
            await history.heal()
            await _end(history)
        except AssertionError as error:
            story = "\n".join(history.story)
            raise AssertionError(f"seed {seed}: {error}\n{story}") from error


async def _end(history: DrainHistory) -> None:
    sim, ledger = history.sim, history.ledger
    latest = max(map(ledger.due, history.leaving))
    latest = max(latest, sim.clock.monotonic())
    await sim.until(
        lambda: history.all_gone, within=latest + BOUND - sim.clock.monotonic(), what="all are gone"
    )
    assert not ledger.broken, "\n".join(ledger.broken)
    asked = Counter(a.uid for a in ledger.asked)
    assert not {u: n for u, n in asked.items() if n > MOST_REQUESTS}, "too many requests"
    await sim.pass_time(200)
    assert not (left := list(_left_behind(sim))), f"left behind: {left}\n{sim.describe()}"
    before = _writes(sim)
    await sim.pass_time(300)
    assert _writes(sim) == before, "it goes on writing"


def _left_behind(sim: Simulation) -> list[str]:
    found: list[str] = []
    nodes: list[Any] = list(sim.objects(NODES))
    machines: list[Any] = list(sim.objects(MACHINES))
    for node in nodes:
        if any(t["key"] == TAINT_OUT_OF_SERVICE for t in node["spec"].get("taints") or ()):
            found.append(f"the taint of {name_of(node)}")
        if node["spec"].get("unschedulable"):
            found.append(f"the cordon of {name_of(node)}")
    for machine in machines:
        if ANNOTATION_DRAIN_RECORD in (machine["metadata"].get("annotations") or {}):
            found.append(f"the record of {name_of(machine)}")
        conditions = machine.get("status", {}).get("conditions") or ()
        if any(c["type"] == CONDITION_DRAINED for c in conditions):
            found.append(f"the condition of {name_of(machine)}")
    return found


def _writes(sim: Simulation) -> int:
    """How often the manager wrote; a series of events is concluded half an hour later."""
    written = sim.server.requests.writes
    return written(agent="mcm") - written(agent="mcm", resource=EVENTS.name)
