"""Whatever the order of events, a pool as a whole keeps its promises, and every update ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.machine import DeploymentStrategy
from tests.thoroughness import THOROUGH
from tests.unit.deployment.fleet_model import FleetModel, Number, rolling
from tests.unit.deployment.surge_pool.pool_model import PoolModel

NUMBERS: st.SearchStrategy[Number] = st.one_of(
    st.integers(0, 4), st.sampled_from(["0%", "1%", "10%", "25%", "50%", "100%"])
)
ROLLING = st.builds(rolling, NUMBERS, NUMBERS)
ZONES = st.lists(st.integers(0, 4), min_size=2, max_size=3)
EXAMPLES = 100 if THOROUGH else 25
MOVE = st.tuples(st.integers(0, 129), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
MOVES = st.lists(MOVE, min_size=60, max_size=150)


def _pick(names: list[str], number: int) -> str | None:
    return names[number % len(names)] if names else None


def _move(pool: PoolModel, member: FleetModel, kind: int, number: int) -> None:
    """Controllers and machines: nothing that a user does."""
    if kind < 30:
        pool.acts(member)
    elif kind < 55:
        if (uid := _pick(list(member.sets), number)) is not None:
            member.set_acts(uid)
    elif kind < 65:
        if (uid := _pick(list(member.sets), number)) is not None:
            member.set_reports(uid)
    elif (name := _pick(list(member.machines), number)) is not None:
        member.machine_moves(name)


def _interfere(pool: PoolModel, member: FleetModel, kind: int, number: int) -> None:
    if kind < 40:
        pool.user_scales(member, number % 6)
    elif kind < 75:
        member.user_updates(number % 3)
    else:
        member.user_pauses(paused=bool(number % 2))


def _check_count(pool: PoolModel) -> None:
    most = pool.most + pool.over + pool.leaving_failures
    assert pool.machines <= most, (pool.machines, pool.budget, pool.over)
    pool.settle_excess()


def _play_an_update(pool: PoolModel, moves: list[tuple[int, int, int, int]]) -> None:
    """Roll all members at once, undisturbed; check at every moment."""
    pool.finish()
    for member in pool.members:
        member.user_updates(1)
    for _, which, kind, number in moves:
        _move(pool, pool.members[which % len(pool.members)], kind, number)
        assert sum(m.available for m in pool.members) >= pool.least
        assert pool.machines <= pool.most
    pool.finish()
    for member in pool.members:
        desired = member.deployment.spec.replicas
        assert member.sizes() == (0, desired)
        assert member.available == len(member.machines) == desired


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(ZONES, ROLLING, MOVES)
def test_an_undisturbed_update_of_all_zones_keeps_both_promises_at_every_moment(
    zones: list[int], strategy: DeploymentStrategy, moves: list[tuple[int, int, int, int]]
) -> None:
    _play_an_update(PoolModel(zones, strategy), moves)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(ZONES, ROLLING, MOVES)
def test_users_in_the_middle_of_it_break_no_promise_of_the_pool(
    zones: list[int], strategy: DeploymentStrategy, moves: list[tuple[int, int, int, int]]
) -> None:
    pool = PoolModel(zones, strategy)
    for what, which, kind, number in moves:
        member = pool.members[which % len(pool.members)]
        before = min(pool.least, pool.guaranteed)
        if what < 120:
            _move(pool, member, kind, number)
            assert pool.guaranteed >= min(before, pool.least)
        else:
            _interfere(pool, member, kind, number)
        _check_count(pool)
    _end(pool)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(ZONES, ROLLING, MOVES)
def test_failing_machines_of_one_zone_stop_no_other_for_good(
    zones: list[int], strategy: DeploymentStrategy, moves: list[tuple[int, int, int, int]]
) -> None:
    pool = PoolModel(zones, strategy)
    for what, which, kind, number in moves:
        member = pool.members[which % len(pool.members)]
        if what < 100:
            _move(pool, member, kind, number)
        elif what >= 120:
            _interfere(pool, member, kind, number)
        elif (name := _pick(list(member.machines), number)) is not None:
            member.machine_breaks(name)
        _check_count(pool)
    _end(pool)


def _end(pool: PoolModel) -> None:
    for member in pool.members:
        member.user_pauses(paused=False)
    pool.finish()
    for member in pool.members:
        desired = member.deployment.spec.replicas
        assert member.sizes() == (0, desired)
        assert member.available == len(member.machines) == desired


@pytest.mark.parametrize("numbers", [(1, 0), (0, 1), (2, 1)])
def test_one_machine_too_many_is_found(numbers: tuple[int, int]) -> None:
    """The game is worth something: a pool that gives one more than it has loses it."""
    moves = [(0, i % 3, kind, i // 2) for i in range(60) for kind in (0, 40, 40, 70, 70, 60)]
    _play_an_update(PoolModel([3, 3, 3], rolling(*numbers)), moves)
    with pytest.raises(AssertionError):
        _play_an_update(PoolModel([3, 3, 3], rolling(*numbers), loosened=1), moves)
