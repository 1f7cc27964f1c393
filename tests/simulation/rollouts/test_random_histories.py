"""Whatever users and clouds do to a rollout: no promise is broken, and it ends as declared."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

import pytest

from mcm.controllers.deployment import decision
from mcm.controllers.deployment.fleet import Fleet
from mcm.controllers.deployment.in_place_update import sizes as in_place_sizes
from mcm.controllers.deployment.sizes import bounds, rolling, scaling
from mcm.events import EVENTS
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.rollouts.ending import missing
from tests.simulation.rollouts.history import OPTIONS, History
from tests.thoroughness import part_of

NAMED = {417: "a set made machines that its deployment had meanwhile taken off it again"}
"""Seeds that once failed, and what it was."""
SEEDS = (*part_of(range(40), one_in=8, in_ci=2), *NAMED)
TROUBLES = 12
BOUND = 3600.0
"""Seconds within which a history ends once nothing troubles it any more."""


@pytest.mark.parametrize("seed", SEEDS)
def test_every_history_keeps_the_promises_and_ends(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    run_virtual(lambda: live(seed))
    assert not [r.getMessage() for r in caplog.records if r.exc_info], f"seed {seed}"


async def live(seed: int) -> None:
    """Live through the history of ``seed``. Raises AssertionError for all that goes wrong in it."""
    async with Simulation(seed=seed, options=OPTIONS, node_grace=60, heartbeat_interval=20) as sim:
        history = History(sim, random.Random(f"rollout {seed}"))
        await history.begin()
        agents = asyncio.create_task(history.agents())
        try:
            for _ in range(TROUBLES):
                await history.trouble()
                await sim.pass_time(history.chance.choice((0, 1, 5, 20, 60, 180)))
            await history.heal()
            await _end(history)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n{_told(history)}") from error
        finally:
            agents.cancel()
            await asyncio.gather(agents, return_exceptions=True)


async def _end(history: History) -> None:
    sim = history.sim
    deadline = sim.clock.monotonic() + BOUND
    while found := missing(sim, history.declared, in_place=history.in_place):
        assert sim.clock.monotonic() < deadline, f"it never ends: {found}\n{sim.describe()}"
        await sim.pass_time(10)
    await sim.pass_time(300)
    found = missing(sim, history.declared, in_place=history.in_place)
    assert not found, f"it did not stay so: {found}\n{sim.describe()}"
    before = _writes(sim)
    await sim.pass_time(600)
    assert _writes(sim) == before, "it goes on writing"
    assert not history.promises.broken, history.promises.broken


@pytest.mark.parametrize("promise", ["surge", "unavailable"])
def test_a_promise_that_is_off_by_one_is_found(
    promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planner's own checks are off, so that only what the histories look at can find it."""
    _sabotage(promise, monkeypatch)
    assert any(_goes_wrong(seed) for seed in range(40)), f"nobody noticed: {promise}"


def _sabotage(promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def more_room(fleet: Fleet, limits: bounds.Bounds) -> int:
        return room(fleet, limits) + 1

    def fewer_must_serve(fleet: Fleet, limits: bounds.Bounds) -> int:
        return max(0, must_serve(fleet, limits) - 1)

    def lower_floor(fleet: Fleet, limits: bounds.Bounds) -> int:
        return max(0, floor_of(fleet, limits) - 1)

    room, must_serve, floor_of = bounds.room, bounds.must_serve, bounds.floor_of
    wrong: dict[str, Callable[..., object]] = {
        "check_rollout": lambda *_, **__: None,
        "check_scaling": lambda *_, **__: None,
    }
    if promise == "surge":
        wrong["room"] = more_room
    else:
        wrong |= {"must_serve": fewer_must_serve, "floor_of": lower_floor}
    for module in (decision, rolling, scaling, in_place_sizes):
        for name in wrong.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, wrong[name])


def _goes_wrong(seed: int) -> bool:
    try:
        run_virtual(lambda: live(seed))
    except AssertionError:
        return True
    return False


def _writes(sim: Simulation) -> int:
    """How often the manager wrote; a series of events is concluded half an hour later."""
    written = sim.server.requests.writes
    return written(agent="mcm") - written(agent="mcm", resource=EVENTS.name)


def _told(history: History) -> str:
    return "\n".join(history.story)
