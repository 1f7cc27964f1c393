"""Whatever befalls a rollout, and whatever its user makes of it: promises hold, and it ends."""

from __future__ import annotations

import random

import pytest

from mcm.api.machine import DeploymentStrategy
from mcm.api.names import ANNOTATION_FAILING_SINCE
from mcm.controllers.deployment.fleet import Fleet, SetState
from mcm.controllers.deployment.sizes import rolling as rolling_module
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.machine.health import moving_machines
from tests.thoroughness import part_of
from tests.unit.deployment.broken_fleet_model import BrokenFleetModel
from tests.unit.deployment.fleet_model import rolling

SEEDS = part_of(range(220), one_in=10, in_ci=2)
GOOD, BROKEN, OTHER = 0, 1, 2


def begun(chance: random.Random) -> BrokenFleetModel:
    """A fleet that is complete, with a version that never comes up, and one that does."""
    replicas = chance.randint(1, 7)
    strategy = rolling(chance.choice((0, 1, 2, "25%")), chance.choice((0, 1, 2, "25%")))
    model = BrokenFleetModel(replicas, strategy)
    if chance.random() < 0.5:
        model.refused.add(BROKEN)
    else:
        model.lonely.add(BROKEN)
    model.run_out()
    assert model.available == replicas
    model.user_updates(BROKEN)
    return model


def play(model: BrokenFleetModel, chance: random.Random, *, wild: bool) -> None:
    """One move. ``wild``: users change their minds, besides."""
    names, uids = list(model.machines), list(model.sets)
    match chance.choice(("deployment",) * 3 + ("set",) * 3 + ("report", "machine", "machine") * 2):
        case "deployment":
            before = min(model.bounds.least, model.guaranteed)
            model.deployment_acts()
            assert model.is_recreating() or model.guaranteed >= before
        case "set" if uids:
            model.set_acts(chance.choice(uids))
        case "report" if uids:
            model.set_reports(chance.choice(uids))
        case "machine" if names:
            model.machine_moves(chance.choice(names))
    names = list(model.machines)
    if chance.random() < 0.04 and names:
        model.machine_breaks(chance.choice(names))
    if chance.random() < 0.02 and names:
        model.machine_recovers(chance.choice(names))
    if chance.random() < 0.02 and names:
        model.stuck.add(chance.choice(names))
    if wild and chance.random() < 0.06:
        interfere(model, chance, uids)


def interfere(model: BrokenFleetModel, chance: random.Random, uids: list[str]) -> None:
    match chance.choice(("scale", "update", "update", "pause", "resume", "freeze")):
        case "scale":
            model.user_scales(chance.randint(0, 7))
        case "update":
            model.user_updates(chance.choice((GOOD, BROKEN, OTHER)))
        case "pause":
            model.user_pauses(paused=True)
        case "resume":
            model.user_pauses(paused=False)
        case "freeze" if uids:
            model.user_freezes(chance.choice(uids))


def check(model: BrokenFleetModel) -> None:
    most = model.bounds.most + model.over + model.leaving_failures
    assert len(model.machines) <= most, "more machines than surge allows"
    model.settle_excess()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("end", ["taken back", "another version", "mended"])
def test_once_faults_stop_it_ends_as_declared(seed: int, end: str) -> None:
    chance = random.Random(f"{seed} {end}")
    model = begun(chance)
    if chance.random() < 0.2:
        strategy = DeploymentStrategy(type="Recreate")
        model._change(strategy=strategy)
    for _ in range(chance.randint(5, 120)):
        play(model, chance, wild=True)
        check(model)
    model.faults_stop()
    model.user_pauses(paused=False)
    if end == "mended":
        model.refused.clear()
        model.lonely.clear()
    else:
        model.user_updates(GOOD if end == "taken back" else OTHER)
    model.run_out()
    desired = model.deployment.spec.replicas
    assert model.sizes() == (0, desired)
    assert model.available == len(model.machines) == desired
    notes = [s.metadata.annotations for s in model.sets.values()]
    assert not any(ANNOTATION_FAILING_SINCE in n for n in notes)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broken_version_that_stays_declared_comes_to_rest_and_says_so(seed: int) -> None:
    chance = random.Random(f"{seed} stays")
    model = begun(chance)
    for _ in range(chance.randint(5, 120)):
        play(model, chance, wild=False)
        check(model)
    model.faults_stop()
    model.run_out()
    assert model.available >= model.bounds.least
    snapshot = model.snapshot()
    assert snapshot.new is not None
    assert ANNOTATION_FAILING_SINCE in snapshot.new.metadata.annotations
    resting = model.available
    for _ in range(10):
        model.converge_once()
    assert model.available == resting


@pytest.mark.parametrize("seed", SEEDS)
def test_never_are_two_machines_given_up_at_once_of_what_works(seed: int) -> None:
    """A false alarm in a stuck rollout: all old machines seem dead, but for their VMs' sake none
    is given up before the last one is replaced."""
    chance = random.Random(f"{seed} alarm")
    model = begun(chance)
    for _ in range(30):
        play(model, chance, wild=False)
    model.faults_stop()
    for name in tuple(model.machines):
        model.machine_breaks(name)
    for _ in range(60):
        play(model, chance, wild=False)
        leaving = [
            name for name in model.given_up & model.machines.keys() if _is_wanted(model, name)
        ]
        assert len(leaving) <= 1, leaving


def _is_wanted(model: BrokenFleetModel, name: str) -> bool:
    """Whether its set wants machines at all; who is surplus anyway may go at any time."""
    return model.sets[model.machines[name].metadata.labels["set"]].spec.replicas > 0


def test_without_either_half_of_the_way_out_some_history_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That the games above end is not because they are tame."""

    def kept(_: SetState, fleet: Fleet, __: Bounds) -> dict[str, int]:
        return {s.uid: s.replicas for s in fleet.old}

    monkeypatch.setattr(rolling_module, "_without_useless", kept)
    monkeypatch.setattr(moving_machines, "is_set_failing", lambda _: False)
    ended = 0
    for seed in range(20):
        try:
            test_once_faults_stop_it_ends_as_declared(seed, "taken back")
            ended += 1
        except AssertionError as stuck:
            assert "never rests" in str(stuck)  # noqa: PT017
    assert ended < 20


def test_machines_made_in_vain_that_hold_others_up_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moving_machines, "is_set_failing", lambda _: False)
    stuck = 0
    for seed in range(20):
        try:
            test_a_broken_version_that_stays_declared_comes_to_rest_and_says_so(seed)
        except AssertionError:
            stuck += 1
    assert stuck
