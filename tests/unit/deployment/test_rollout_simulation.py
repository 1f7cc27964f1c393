"""Whatever the order of events: never too many machines, never too few that serve, and an end."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.machine import DeploymentStrategy
from tests.unit.deployment.fleet_model import FleetModel, Number, rolling

NUMBERS: st.SearchStrategy[Number] = st.one_of(
    st.integers(0, 4), st.sampled_from(["0%", "1%", "25%", "30%", "50%", "100%"])
)
ROLLING = st.builds(rolling, NUMBERS, NUMBERS)
RECREATE = st.just(DeploymentStrategy(type="Recreate"))
# Without a least length most games would be over before they are interesting.
MOVES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=40, max_size=150)
REPLICAS = st.integers(0, 9)


def _games(kinds: int) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    move = st.tuples(st.integers(0, kinds), st.integers(0, 99), st.integers(0, 99))
    return st.lists(move, min_size=60, max_size=200)


def _pick(model: FleetModel, act: Callable[[str], object], names: list[str], number: int) -> None:
    if names:
        act(names[number % len(names)])


def _move(model: FleetModel, kind: int, number: int) -> None:
    """Controllers and machines: nothing that a user does."""
    if kind < 30:
        model.deployment_acts()
    elif kind < 55:
        _pick(model, model.set_acts, list(model.sets), number)
    elif kind < 65:
        _pick(model, model.set_reports, list(model.sets), number)
    else:
        _pick(model, model.machine_moves, list(model.machines), number)


def _interfere(model: FleetModel, kind: int, number: int, *, choosing: bool = False) -> None:
    """Users, in the middle of everything. One who is ``choosing`` says which machine goes first,
    which may well be one that serves."""
    if kind < 40:
        model.user_scales(number % 10)
    elif kind < 70:
        model.user_updates(number % 3)  # forward, or back to a template that has a set
    elif kind < 85 or not choosing:
        model.user_pauses(paused=bool(number % 2))
    else:
        _pick(model, model.user_prefers, list(model.machines), number)


def _check_count(model: FleetModel) -> None:
    most = model.bounds.most + model.over + model.leaving_failures
    assert len(model.machines) <= most, (len(model.machines), model.bounds, model.over)
    model.settle_excess()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(REPLICAS, ROLLING, MOVES)
def test_an_undisturbed_update_keeps_both_promises_at_every_moment(
    replicas: int, strategy: DeploymentStrategy, moves: list[tuple[int, int]]
) -> None:
    model = FleetModel(replicas, strategy)
    model.finish()
    assert model.available == replicas
    model.user_updates(1)
    for kind, number in moves:
        _move(model, kind, number)
        assert model.available >= model.bounds.least
        _check_count(model)
    model.finish()
    assert model.sizes() == (0, replicas)
    assert model.available == len(model.machines) == replicas


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    REPLICAS,
    st.one_of(ROLLING, RECREATE),
    _games(119),
)
def test_users_in_the_middle_of_it_break_no_promise(
    replicas: int, strategy: DeploymentStrategy, moves: list[tuple[int, int, int]]
) -> None:
    model = FleetModel(replicas, strategy)
    for which, kind, number in moves:
        before = min(model.bounds.least, model.guaranteed)
        if which < 100:
            _move(model, kind, number)
            if not model.is_recreating():
                assert model.guaranteed >= min(before, model.bounds.least)
        else:
            _interfere(model, kind, number)
        _check_count(model)
    model.user_pauses(paused=False)
    model.finish()
    desired = model.deployment.spec.replicas
    assert model.sizes() == (0, desired)
    assert model.available == len(model.machines) == desired


@settings(max_examples=150, deadline=None, derandomize=True)
@given(REPLICAS, ROLLING, _games(129))
def test_failing_machines_neither_multiply_the_fleet_nor_stop_it_for_good(
    replicas: int, strategy: DeploymentStrategy, moves: list[tuple[int, int, int]]
) -> None:
    model = FleetModel(replicas, strategy)
    for which, kind, number in moves:
        if which < 100:
            _move(model, kind, number)
        elif which < 120:
            _pick(model, model.machine_breaks, list(model.machines), number)
        else:
            _interfere(model, kind, number, choosing=True)
        _check_count(model)
    model.user_pauses(paused=False)
    model.finish()
    desired = model.deployment.spec.replicas
    assert model.sizes() == (0, desired)
    assert model.available == len(model.machines) == desired
