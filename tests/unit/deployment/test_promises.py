from __future__ import annotations

import pytest

from mcm.controllers.deployment.fleet import Fleet, Targets
from mcm.controllers.deployment.limits import Limits
from mcm.controllers.deployment.promises import BrokenPromise, check_rollout, check_scaling
from tests.unit.deployment.states import fleet, state

WHOLE = fleet(state("new", 1), state("old", 4))
LIMITS = Limits(4, surge=1)


@pytest.mark.parametrize(
    ("whole", "targets", "complaint"),
    [
        (WHOLE, {"new": 2}, "6 machines could exist"),
        (WHOLE, {"new": 0, "old": 0}, "fewer than 4 replicas"),
        (WHOLE, {"old": 2}, "fewer than 4 replicas"),
        (fleet(state("new", 1), state("old", 4, "RR..")), {"old": 3}, "2 machines would serve"),
        (WHOLE, {"else": 2}, "set else"),
        (WHOLE, {"old": -1}, "set old"),
    ],
)
def test_a_harmful_step_is_refused(whole: Fleet, targets: Targets, complaint: str) -> None:
    with pytest.raises(BrokenPromise, match=complaint):
        check_rollout(whole, targets, LIMITS)


@pytest.mark.parametrize(
    ("whole", "targets"),
    [
        (WHOLE, {}),
        (WHOLE, {"old": 3}),
        (fleet(state("new", 2, ".."), state("old", 2, "..")), {}),  # too few before
        (fleet(state("new", 9)), {"new": 4}),
    ],
)
def test_a_harmless_step_passes(whole: Fleet, targets: Targets) -> None:
    check_rollout(whole, targets, LIMITS)


def test_what_users_ask_for_may_come_on_top_of_what_is_leaving() -> None:
    whole = fleet(state("new", 2, terminating=3))
    with pytest.raises(BrokenPromise):
        check_scaling(whole, {"new": 5}, Limits(5, surge=1))
    check_scaling(whole, {"new": 5}, Limits(5, surge=1), asked_for=3)


def test_nothing_may_be_left_if_nothing_is_desired() -> None:
    check_scaling(WHOLE, {"new": 0, "old": 0}, Limits(0))
