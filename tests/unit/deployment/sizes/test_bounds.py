from __future__ import annotations

import pytest

from mcm.api.machine import DeploymentStrategy, InPlaceUpdate, MachineDeploymentSpec
from mcm.controllers.deployment.fleet import Fleet, Targets
from mcm.controllers.deployment.sizes.bounds import (
    Bounds,
    OutOfBounds,
    bounds_of,
    check_rollout,
    check_scaling,
    recorded_bounds,
)
from tests.unit.deployment.fleet_model import Number, rolling
from tests.unit.deployment.states import fleet, state


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "wanted"),
    [
        (10, 3, 2, (3, 2)),
        (10, "25%", "25%", (3, 2)),
        (2, "1%", "25%", (1, 0)),
        (2, "0%", "1%", (0, 1)),  # both zero: one may be unavailable
        (5, 0, 0, (0, 1)),
        (3, 1, 0, (1, 0)),
        (3, 0, 7, (0, 3)),  # no more than there are
        (0, "50%", "50%", (0, 0)),
        (0, 2, 2, (2, 0)),
        (7, "100%", "100%", (7, 7)),
    ],
)
def test_shares_round_up_for_surge_and_down_for_unavailable(
    replicas: int, surge: Number, unavailable: Number, wanted: tuple[int, int]
) -> None:
    spec = MachineDeploymentSpec(replicas=replicas, strategy=rolling(surge, unavailable))
    bounds = bounds_of(spec)
    assert (bounds.surge, bounds.unavailable) == wanted
    assert bounds.desired == replicas


def test_recreate_has_neither() -> None:
    spec = MachineDeploymentSpec(replicas=4, strategy=DeploymentStrategy(type="Recreate"))
    assert bounds_of(spec) == Bounds(4)


@pytest.mark.parametrize(
    ("kind", "surge", "unavailable", "wanted"),
    [
        ("Auto", 2, 1, Bounds(10, surge=2, unavailable=1)),
        ("Auto", "25%", "25%", Bounds(10, surge=3, unavailable=2)),
        ("Auto", 0, 0, Bounds(10, unavailable=1)),
        ("Auto", 1, 0, Bounds(10, surge=1)),
        ("Auto", 0, 99, Bounds(10, unavailable=10)),
        ("Manual", 2, 1, Bounds(10, unavailable=1)),
        ("Manual", 2, 0, Bounds(10, unavailable=1)),
        ("Manual", 0, "30%", Bounds(10, unavailable=3)),
    ],
)
def test_an_update_in_place_has_its_own_and_people_have_no_surge(
    kind: str, surge: Number, unavailable: Number, wanted: Bounds
) -> None:
    block = InPlaceUpdate(max_surge=surge, max_unavailable=unavailable, orchestration_type=kind)
    strategy = DeploymentStrategy(type="InPlaceUpdate", in_place_update=block)
    spec = MachineDeploymentSpec(replicas=10, strategy=strategy)
    assert bounds_of(spec) == wanted
    assert recorded_bounds(spec) == Bounds(10, unavailable=wanted.unavailable)


def test_a_strategy_that_says_nothing_replaces_one_at_a_time() -> None:
    assert bounds_of(MachineDeploymentSpec(replicas=4)) == Bounds(4, surge=1, unavailable=1)


def test_a_deployment_of_none_may_have_none() -> None:
    assert (Bounds(0, surge=3).most, Bounds(0, surge=3).least) == (0, 0)
    assert (Bounds(4, surge=1, unavailable=2).most, Bounds(4, unavailable=2).least) == (5, 2)


WHOLE = fleet(state("new", 1), state("old", 4))
BOUNDS = Bounds(4, surge=1)


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
    with pytest.raises(OutOfBounds, match=complaint):
        check_rollout(whole, targets, BOUNDS)


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
    check_rollout(whole, targets, BOUNDS)


def test_what_users_ask_for_may_come_on_top_of_what_is_leaving() -> None:
    whole = fleet(state("new", 2, terminating=3))
    with pytest.raises(OutOfBounds):
        check_scaling(whole, {"new": 5}, Bounds(5, surge=1))
    check_scaling(whole, {"new": 5}, Bounds(5, surge=1), asked_for=3)


def test_nothing_may_be_left_if_nothing_is_desired() -> None:
    check_scaling(WHOLE, {"new": 0, "old": 0}, Bounds(0))
