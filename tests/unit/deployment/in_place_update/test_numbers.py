"""How many are selected, and how large sets are, in numbers worked out from the formulas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcm.controllers.deployment.fleet import SetState
from mcm.controllers.deployment.in_place_update.selection import quota
from mcm.controllers.deployment.in_place_update.sizes import Step, after_moves, in_place_step
from mcm.controllers.deployment.sizes.bounds import Bounds
from tests.unit.deployment.states import fleet, state


@pytest.mark.parametrize(
    ("serving", "floor", "in_new", "on_the_way", "wanted"),
    [
        (10, 9, 0, 0, 1),  # surge 0, unavailable 1
        (9, 9, 0, 1, 0),  # one is being updated
        (10, 9, 1, 0, 1),  # it moved, and serves: the next one
        (10, 7, 0, 0, 3),
        (7, 7, 0, 3, 0),
        (8, 7, 1, 2, 1),  # one of three is through
        (10, 10, 2, 0, 0),  # surge 2, unavailable 0: the new machines do not serve yet
        (12, 10, 2, 0, 2),
        (10, 10, 2, 2, 0),
        (12, 10, 8, 0, 2),
        (12, 10, 9, 0, 1),  # no more than the new set lacks
        (12, 10, 9, 1, 0),
        (12, 10, 10, 0, 0),
        (10, 0, 0, 0, 10),  # all at once
        (6, 8, 0, 0, 0),  # fewer serve than should, and none by us
        (11, 8, 3, 5, 2),
    ],
)
def test_as_many_are_selected_as_serve_to_spare_and_the_new_set_lacks(
    serving: int, floor: int, in_new: int, on_the_way: int, wanted: int
) -> None:
    assert (
        quota(serving=serving, floor=floor, desired=10, in_new=in_new, on_the_way=on_the_way)
        == wanted
    )


@pytest.mark.parametrize(
    ("new", "old", "on_the_way", "bounds", "wanted"),
    [
        # N machines of the new set, old ones, how many are being updated: R serves, . does not
        (state("n", 0, ""), state("o", 10), 0, Bounds(10, unavailable=2), Step({}, 2)),
        (state("n", 0, ""), state("o", 10, "..RRRRRRRR"), 2, Bounds(10, unavailable=2), Step()),
        # an old machine is lost: the new set makes another
        (state("n", 0, ""), state("o", 10, "R" * 9), 0, Bounds(10), Step({"o": 9, "n": 1}, 0)),
        # one that failed does not keep the others from their turn
        (state("n", 8), state("o", 2, ".R"), 0, Bounds(10, unavailable=2), Step({}, 1)),
        # what surge left over goes once the new set is whole, and serves
        (state("n", 10), state("o", 2), 0, Bounds(10, surge=2), Step({"o": 0})),
        (state("n", 10, ".RRRRRRRRR"), state("o", 2), 0, Bounds(10, surge=2), Step({"o": 1})),
        # scaled up: the new set grows, but leaves room for those about to join it
        (state("n", 2, desired=4), state("o", 2, ".R", desired=4), 1, Bounds(6), Step({"n": 4})),
        # scaled down: both shrink, as in a rolling update
        (
            state("n", 5, desired=10, most=10),
            state("o", 5, desired=10, most=10),
            0,
            Bounds(4, unavailable=1),
            Step({"o": 2, "n": 2}),
        ),
    ],
)
def test_a_step(
    new: SetState, old: SetState, on_the_way: int, bounds: Bounds, wanted: Step
) -> None:
    everything = fleet(new, replace(old, locked=True))
    assert everything.new is not None
    step = in_place_step(everything.new, everything, bounds, on_the_way=on_the_way, selecting=True)
    assert step == wanted


def test_people_select_for_themselves() -> None:
    everything = fleet(state("n", 0, ""), state("o", 3))
    assert everything.new is not None
    bounds = Bounds(3, unavailable=1)
    step = in_place_step(everything.new, everything, bounds, on_the_way=0, selecting=False)
    assert step == Step()


def test_sizes_follow_machines_that_moved_and_the_one_left_behind_shrinks_first() -> None:
    new = replace(state("n", 1, "R.."), pinned=2)
    old = replace(state("o", 5, "RRR"), locked=True)
    assert list(after_moves(fleet(new, old)).items()) == [("o", 3), ("n", 3)]


def test_a_set_that_shrank_already_does_not_shrink_again() -> None:
    new = replace(state("n", 1, "R."), pinned=1)
    old = replace(state("o", 3, "RRR"), locked=True)
    assert after_moves(fleet(new, old)) == {"n": 2}
    assert after_moves(fleet(replace(new, replicas=2), old)) == {}


def test_an_unlocked_set_gives_nothing_up_for_what_came_from_elsewhere() -> None:
    new = replace(state("n", 1, "R."), pinned=1)
    assert after_moves(fleet(new, state("o", 5, "RRR"))) == {"n": 2}
