"""What a member takes of its pool's budget, counted for the worst: tables."""

from __future__ import annotations

import pytest

from mcm.controllers.deployment.fleet import Fleet, SetState
from mcm.controllers.deployment.surge_pool.usage import PossibleChanges, Usage, usage_of

SERVING = (True, True, True)
OLD = SetState("old", 3, SERVING)
NOTHING = PossibleChanges()


def usage(fleet: Fleet, claimed: PossibleChanges = NOTHING, *, updates: bool = True) -> Usage:
    return usage_of("z", fleet, 3, updates=updates, claimed=claimed)


@pytest.mark.parametrize(
    ("fleet", "over", "missing", "updating"),
    [
        (Fleet(new=OLD), 0, 0, False),
        (Fleet(old=(OLD,)), 0, 0, False),  # an update is wanted, and has not begun
        (Fleet(new=SetState("new", 0), old=(OLD,)), 0, 0, False),
        (Fleet(new=SetState("new", 1), old=(OLD,)), 1, 0, True),
        (Fleet(new=SetState("new", 1, (True,)), old=(SetState("old", 2, SERVING),)), 1, 0, True),
        (
            Fleet(
                new=SetState("new", 1, (True,)),
                old=(SetState("old", 2, (True, True), terminating=1),),
            ),
            1, 0, True,
        ),
        (Fleet(new=SetState("new", 3, (True, True, False))), 0, 1, False),
        (Fleet(new=SetState("new", 3, (False, True, True), preserved=1)), 0, 0, False),
        (Fleet(new=SetState("new", 3)), 0, 3, False),  # created just now
        (Fleet(), 0, 3, False),
        (Fleet(new=OLD, deleted=(SetState("gone", 0, (True,), deleted=True),)), 1, 0, False),
    ],
)  # fmt: skip
def test_machines_over_and_missing(fleet: Fleet, over: int, missing: int, updating: bool) -> None:
    assert usage(fleet) == Usage("z", 3, over, missing, updating)
    assert usage(fleet).idle == (not (over or missing or updating))


def test_one_that_is_paused_goes_before_nobody_and_uses_what_it_uses() -> None:
    fleet = Fleet(new=SetState("new", 1), old=(OLD,))
    assert usage(fleet, updates=False) == Usage("z", 3, over=1)


@pytest.mark.parametrize(
    ("claimed", "over", "missing"),
    [
        (PossibleChanges(sizes=(("new", 2),)), 2, 0),
        (PossibleChanges(sizes=(("old", 1),)), 1, 2),
        (PossibleChanges(sizes=(("old", 2), ("old", 3))), 1, 1),
        (PossibleChanges(sizes=(("unknown", 9),)), 1, 0),
        (PossibleChanges(created=(1,)), 2, 0),
        (PossibleChanges(selected=1), 1, 1),
        (PossibleChanges(sizes=(("old", 1),), selected=2), 1, 3),
    ],
)
def test_what_may_have_been_written_counts_where_it_is_worse(
    claimed: PossibleChanges, over: int, missing: int
) -> None:
    fleet = Fleet(new=SetState("new", 1), old=(OLD,))
    assert usage(fleet, claimed) == Usage("z", 3, over, missing, updating=True)
