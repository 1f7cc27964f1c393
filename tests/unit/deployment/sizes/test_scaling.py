from __future__ import annotations

import pytest

from mcm.controllers.deployment.fleet import Fleet, Targets
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.sizes.scaling import asked_for, is_due, sizes
from tests.unit.deployment.states import fleet, state

NO_LIMITS = Bounds(0)


@pytest.mark.parametrize(
    ("whole", "desired", "due"),
    [
        pytest.param(fleet(state("new", 3, desired=3)), 3, False, id="as before"),
        pytest.param(fleet(state("new", 3, desired=3)), 4, True, id="more"),
        pytest.param(fleet(state("new", 3, desired=3)), 0, True, id="none"),
        pytest.param(fleet(state("new", 3)), 4, False, id="nothing remembered"),
        pytest.param(
            fleet(state("new", 2, desired=3), state("old", 1, desired=2)), 3, True, id="an old set"
        ),
        pytest.param(
            fleet(state("new", 3, desired=3), state("old", 0, desired=9)), 3, False, id="not in use"
        ),
        pytest.param(fleet(None, state("old", 3, desired=3)), 4, False, id="no new set"),
        pytest.param(fleet(state("new", 0, desired=0)), 3, False, id="from zero, as in an update"),
    ],
)
def test_scaling_is_due_when_a_set_in_use_remembers_another_number(
    whole: Fleet, desired: int, due: bool
) -> None:
    assert is_due(whole, Bounds(desired, surge=1)) is due


@pytest.mark.parametrize(
    ("whole", "desired", "targets"),
    [
        pytest.param(fleet(state("new", 3, desired=3)), 5, {"new": 5}, id="up"),
        pytest.param(fleet(state("new", 3, desired=3)), 1, {"new": 1}, id="down"),
        pytest.param(fleet(state("new", 3, desired=3)), 0, {"new": 0}, id="to zero"),
        pytest.param(fleet(state("new", 0, "", desired=0)), 3, {"new": 3}, id="from zero"),
        pytest.param(
            fleet(state("new", 0, ""), state("old", 3, desired=3)), 5, {"old": 5}, id="an old one"
        ),
        pytest.param(
            fleet(None, state("a", 0, "", desired=0), state("b", 0, "", desired=0)),
            2,
            {"b": 2},
            id="the newest if all are empty",
        ),
        pytest.param(
            fleet(state("new", 0, "", terminating=2, desired=0)),
            3,
            {"new": 2},
            id="from zero as far as there is room",
        ),
        pytest.param(
            fleet(state("new", 2, terminating=3, desired=2)),
            5,
            {"new": 5},
            id="at once, though machines are still leaving",
        ),
        pytest.param(
            fleet(state("new", 3, terminating=2, desired=5)),
            5,
            {"new": 4},
            id="without having been asked, only into free room",
        ),
    ],
)
def test_the_only_set_in_use_gets_the_new_size(
    whole: Fleet, desired: int, targets: Targets
) -> None:
    assert sizes(whole, Bounds(desired, surge=1)) == targets


MIDDLE = {"desired": 10, "most": 13}


def middle(old: int, new: int, *, chosen: int = 0, machines: str | None = None) -> Fleet:
    return fleet(
        state("new", new, desired=10, most=13),
        state("old", old, machines, chosen=chosen, desired=10, most=13),
    )


@pytest.mark.parametrize(
    ("whole", "bounds", "targets"),
    [
        pytest.param(middle(5, 8), Bounds(15, surge=3), {"new": 13}, id="growth goes to the new"),
        pytest.param(middle(5, 8), Bounds(5, surge=3), {"old": 3, "new": 5}, id="13 to 8"),
        pytest.param(middle(8, 5), Bounds(5, surge=3), {"old": 5, "new": 3}, id="13 to 8, old"),
        pytest.param(middle(6, 6), Bounds(8, surge=3), {"old": 5}, id="of equals the older"),
        pytest.param(middle(5, 8), Bounds(0, surge=3), {"old": 0, "new": 0}, id="to zero"),
        pytest.param(
            middle(5, 8, chosen=4), Bounds(6, surge=3), {"old": 1}, id="the chosen ones first"
        ),
        pytest.param(
            middle(5, 8, chosen=9), Bounds(6, surge=3), {"old": 1}, id="but not more than must go"
        ),
        pytest.param(middle(5, 8), Bounds(12, surge=1), {}, id="a limit that stays"),
    ],
)
def test_in_the_middle_of_an_update_sets_share_the_change(
    whole: Fleet, bounds: Bounds, targets: Targets
) -> None:
    assert sizes(whole, bounds) == targets


def test_growth_with_an_empty_new_set_beside_several_old_ones_is_not_lost() -> None:
    whole = fleet(
        state("new", 0, "", desired=4, most=4),
        state("a", 2, desired=4, most=4),
        state("b", 2, desired=4, most=4),
    )
    assert sizes(whole, Bounds(6)) == {"new": 2}


def test_growth_while_paused_before_a_new_set_exists_goes_to_the_newest() -> None:
    whole = fleet(None, state("a", 2, desired=4, most=5), state("b", 2, desired=4, most=5))
    assert sizes(whole, Bounds(6, surge=1)) == {"b": 5}


def test_the_new_set_never_grows_beyond_what_is_desired() -> None:
    whole = fleet(state("new", 9, desired=9, most=10), state("old", 1, desired=9, most=10))
    assert sizes(whole, Bounds(10, surge=5)) == {"new": 10}


def test_a_pause_in_the_middle_keeps_every_size() -> None:
    assert sizes(middle(5, 6), Bounds(10, surge=3)) == {}


def test_a_new_set_that_has_everything_ends_the_old_ones() -> None:
    whole = fleet(state("new", 4, desired=4), state("old", 1, desired=9))
    assert sizes(whole, Bounds(4, surge=1)) == {"old": 0}


@pytest.mark.parametrize(("most_of_new", "most_of_old"), [(0, 99), (99, 0), (None, None), (1, 1)])
def test_a_memory_that_makes_no_sense_does_no_harm(
    most_of_new: int | None, most_of_old: int | None
) -> None:
    whole = fleet(
        state("new", 2, desired=4, most=most_of_new), state("old", 2, desired=4, most=most_of_old)
    )
    smaller = sizes(whole, Bounds(2))
    assert sum({"new": 2, "old": 2, **smaller}.values()) == 2
    assert all(0 <= size <= 2 for size in smaller.values())


def test_numbers_as_large_as_they_come_do_not_overflow() -> None:
    largest = 2**31 - 1
    whole = fleet(
        state("new", largest, "", desired=largest, most=2 * largest),
        state("old", largest, "", desired=largest, most=2 * largest),
    )
    half = (largest - 1) // 2
    assert sizes(whole, Bounds(largest - 1)) == {"old": half, "new": half}


def test_a_reduction_spares_machines_that_must_go_on_serving() -> None:
    """By proportion the old set would lose more than the deployment can spare."""
    whole = fleet(
        state("new", 5, ".....", desired=10, most=13),
        state("old", 8, desired=10, most=13),
    )
    bounds = Bounds(6, surge=1)
    targets = sizes(whole, bounds)
    assert targets == {"old": 6, "new": 1}
    assert whole.guaranteed(targets) == 6


def test_a_reduction_of_billions_spares_the_few_machines_that_serve() -> None:
    before = 2_000_000_000
    whole = fleet(
        state("new", before - 2, "....", desired=before, most=before),
        state("old", 2, desired=before, most=before),
    )
    assert sizes(whole, Bounds(4)) == {"new": 2}


def test_what_was_asked_for_is_the_growth_since_the_last_scaling() -> None:
    assert asked_for(fleet(state("new", 3, desired=3)), Bounds(5)) == 2
    assert asked_for(fleet(state("new", 3, desired=3)), Bounds(2)) == 0
    assert asked_for(middle(5, 8), Bounds(12, surge=3)) == 2
    assert asked_for(fleet(None), Bounds(5)) == 0
    assert asked_for(fleet(state("new", 0, desired=0)), Bounds(5)) == 0
