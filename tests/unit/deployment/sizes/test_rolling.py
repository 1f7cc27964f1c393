from __future__ import annotations

import pytest

from mcm.controllers.deployment.fleet import Fleet, SetState, Targets
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.sizes.rolling import initial_size, rolling_step
from tests.unit.deployment.fleet_model import FleetModel, Number, rolling
from tests.unit.deployment.states import fleet, state


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "trace"),
    [
        (3, 1, 0, "3/1 2/1 2/2 1/2 1/3 0/3"),
        (4, 1, 1, "4/1 2/1 2/3 0/3 0/4"),
        (5, 1, 1, "5/1 3/1 3/3 1/3 1/5 0/5"),
        (4, 0, 1, "4/0 3/0 3/1 2/1 2/2 1/2 1/3 0/3 0/4"),
        (10, 3, 2, "10/3 5/3 5/8 0/8 0/10"),
        (10, "25%", "25%", "10/3 5/3 5/8 0/8 0/10"),
        (2, "1%", "25%", "2/1 1/1 1/2 0/2"),
        (2, "0%", "1%", "2/0 1/0 1/1 0/1 0/2"),
        (1, "1%", "25%", "1/1 0/1"),
        (1, "0%", "1%", "1/0 0/0 0/1"),
        (1, 1, 0, "1/1 0/1"),
        (0, 1, 1, "0/0"),
    ],
)
def test_sizes_after_each_step_if_all_machines_follow_in_between(
    replicas: int, surge: Number, unavailable: Number, trace: str
) -> None:
    model = FleetModel(replicas, rolling(surge, unavailable))
    model.finish()
    model.user_updates(1)
    sizes: list[str] = []
    for _ in trace.split():
        model.deployment_acts()
        sizes.append("{}/{}".format(*model.sizes()))
        model.converge()
    assert " ".join(sizes) == trace
    before = model.sizes()
    model.deployment_acts()
    assert model.sizes() == before


def step(new: SetState, bounds: Bounds, *old: SetState) -> Targets:
    return rolling_step(new, fleet(new, *old), bounds)


FOUR = Bounds(4, surge=1)


@pytest.mark.parametrize(
    ("whole", "size"),
    [
        (fleet(None), 4),
        (fleet(None, state("old", 4)), 1),
        (fleet(None, state("old", 4, terminating=1)), 0),
        (fleet(None, state("old", 2)), 3),
        (fleet(None, state("old", 9)), 0),
        (fleet(None, deleted=(state("gone", 3, deleted=True),)), 2),
    ],
)
def test_a_new_set_begins_with_what_there_is_room_for(whole: Fleet, size: int) -> None:
    assert initial_size(whole, FOUR) == size


@pytest.mark.parametrize(
    ("new", "old", "targets"),
    [
        pytest.param(state("new", 1), state("old", 3), {"new": 2}, id="there is room for one"),
        pytest.param(
            state("new", 1), state("old", 3, terminating=1), {}, id="a machine is still leaving"
        ),
        pytest.param(
            state("new", 1), state("old", 3, "RRRR"), {}, id="a machine has still to be deleted"
        ),
        pytest.param(
            state("new", 1), state("old", 3, reported=4), {}, id="the set speaks of one more"
        ),
        pytest.param(
            state("new", 1, ""), state("old", 3), {"new": 2}, id="the first is not made yet"
        ),
        pytest.param(state("new", 6), state("old", 0), {"new": 4}, id="the new set is too large"),
        pytest.param(state("new", 4), state("old", 0), {}, id="done"),
    ],
)
def test_the_new_set_grows_as_far_as_machines_have_room(
    new: SetState, old: SetState, targets: Targets
) -> None:
    assert step(new, FOUR, old) == targets


@pytest.mark.parametrize(
    ("new", "old", "targets"),
    [
        pytest.param(state("new", 1, ""), (state("old", 4),), {}, id="nothing new serves yet"),
        pytest.param(state("new", 1), (state("old", 4),), {"old": 3}, id="one new serves"),
        pytest.param(
            state("new", 2),
            (state("oldest", 2), state("old", 1)),
            {"oldest": 1},
            id="the oldest set first",
        ),
        pytest.param(
            state("new", 1),
            (state("oldest", 1), state("old", 3, ".RR")),
            {"old": 2},
            id="idle machines before all",
        ),
        pytest.param(
            state("new", 1),
            (state("old", 4, "R..."),),
            {},
            id="the one that serves would be the first to go",
        ),
        pytest.param(
            state("new", 2, "R."),
            (state("old", 3, ".RR"),),
            {},
            id="new machines that do not serve replace nothing",
        ),
        pytest.param(
            state("new", 2, ".R", preserved=1),
            (state("old", 3, "RRR"),),
            {"old": 2},
            id="a preserved machine does not stop the update",
        ),
        pytest.param(state("new", 4), (state("old", 1, "."),), {"old": 0}, id="the last one"),
    ],
)
def test_old_sets_shrink_as_far_as_enough_machines_serve(
    new: SetState, old: tuple[SetState, ...], targets: Targets
) -> None:
    bounds = Bounds(4, surge=1)
    assert step(new, bounds, *old) == targets


TEN = Bounds(10, surge=3, unavailable=2)


def test_billions_of_replicas_without_machines_are_taken_at_once() -> None:
    """One by one, this decision alone would hold up every other controller for half an hour."""
    billions = 2_000_000_000
    new, old = state("new", billions // 4, ""), state("old", billions, "RR")
    quarter = Bounds(billions, surge=billions // 4, unavailable=billions // 4)
    assert step(new, quarter, old) == {"old": billions - billions // 4}


def test_a_fleet_of_thousands_moves_in_one_step_if_there_is_surge_for_it() -> None:
    many = 50_000
    assert step(state("new", many), Bounds(many, surge=many), state("old", many)) == {"old": 0}


def test_an_update_that_does_not_work_leaves_the_old_machines_alone() -> None:
    assert step(state("new", 5, "....."), TEN, state("old", 8)) == {}


def test_taking_such_an_update_back_removes_what_it_made() -> None:
    new, old = state("old", 8, ".RRRRRRR"), state("new", 5, ".....")
    assert step(new, TEN, old) == {"new": 1}


def test_machines_that_nobody_can_reach_are_not_swept_away() -> None:
    """All old machines became Unknown: only what may be unavailable anyway is replaced."""
    new = state("new", 3, "...")
    targets = step(new, TEN, state("old", 10, "." * 10))
    assert targets == {"old": 8}
    assert step(new, TEN, state("old", 8, "." * 10)) == {}


def test_a_set_that_is_being_deleted_takes_room_and_guarantees_nothing() -> None:
    new = state("new", 1, "R")
    leaving = state("gone", 3, "RRR", deleted=True)
    assert rolling_step(new, fleet(new, deleted=(leaving,)), FOUR) == {"new": 2}
    assert fleet(new, deleted=(leaving,)).guaranteed() == 1
