"""What a pool may take, and what is left of it for one member: tables."""

from __future__ import annotations

import pytest

from mcm.api.machine import DeploymentStrategy, InPlaceUpdate, MachineDeploymentSpec
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.surge_pool.budget import Budget, budget_of, share_of
from mcm.controllers.deployment.surge_pool.usage import Usage
from tests.unit.deployment.fleet_model import Number, rolling


def spec(surge: Number, unavailable: Number, replicas: int = 3) -> MachineDeploymentSpec:
    return MachineDeploymentSpec(replicas=replicas, strategy=rolling(surge, unavailable))


@pytest.mark.parametrize(
    ("declared", "replicas", "surge", "unavailable"),
    [
        ([(1, 0)] * 3, 9, 1, 0),
        ([(0, 1)] * 3, 9, 0, 1),
        ([("10%", "10%")] * 3, 9, 1, 0),  # up for surge, down for unavailable, of all 9
        ([("25%", "25%")] * 3, 9, 3, 2),
        ([(1, 0), ("25%", 1), (2, 2)], 9, 1, 0),  # the smallest of each
        ([("1%", "1%")], 0, 0, 1),
    ],
)
def test_the_numbers_are_of_all_members_together(
    declared: list[tuple[Number, Number]], replicas: int, surge: int, unavailable: int
) -> None:
    budget = budget_of([spec(*pair) for pair in declared], replicas)
    assert (budget.surge, budget.unavailable) == (surge, unavailable)


def test_both_zero_acts_as_one_for_the_pool_and_says_so() -> None:
    budget = budget_of([spec(0, "1%")] * 3, 9)
    assert (budget.surge, budget.unavailable, budget.allows_nothing) == (0, 1, True)
    assert not budget_of([spec(0, "1%")] * 3, 100).allows_nothing


def test_members_that_declare_other_numbers_are_told_apart() -> None:
    assert budget_of([spec(1, 0), spec("10%", 0)], 6).declared == ((1, 0),)  # the same of 6
    assert budget_of([spec(1, 0), spec(2, 0)], 6).declared == ((1, 0), (2, 0))


def test_recreate_declares_nothing_and_in_place_does() -> None:
    recreate = MachineDeploymentSpec(replicas=3, strategy=DeploymentStrategy(type="Recreate"))
    block = InPlaceUpdate(max_surge=2, max_unavailable=1, orchestration_type="Auto")
    in_place = MachineDeploymentSpec(
        replicas=3, strategy=DeploymentStrategy(type="InPlaceUpdate", in_place_update=block)
    )
    assert budget_of([recreate], 3) == Budget(3, 0, 1)
    assert budget_of([recreate, in_place], 6).declared == ((2, 1),)


ME = Usage("me", 3)
UPDATING = Usage("me", 3, over=1, updating=True)


@pytest.mark.parametrize(
    ("me", "others", "surge", "unavailable"),
    [
        (ME, [], 1, 1),
        (ME, [Usage("b", 3)], 1, 1),
        (ME, [Usage("b", 3, over=1)], 0, 1),
        (ME, [Usage("b", 3, missing=1)], 1, 0),
        (ME, [Usage("b", 3, over=5, missing=5)], 0, 0),
        (ME, [Usage("b", 3, updating=True)], 0, 0),  # who is in the middle goes on first
        (UPDATING, [Usage("b", 3, updating=True)], 1, 1),
        (UPDATING, [Usage("b", 3, over=1, updating=True)], 0, 1),
        # What is missing already may be replaced, whatever others lack.
        (Usage("me", 3, missing=1), [Usage("b", 3, missing=1)], 1, 1),
        (Usage("me", 3, missing=3), [Usage("b", 3, missing=1)], 1, 1),
        # Who lacks something has begun: it could be what the others wait for.
        (Usage("me", 3, missing=1), [Usage("b", 3, updating=True)], 1, 1),
        (Usage("me", 0), [], 1, 0),
    ],
)
def test_a_share_is_what_others_leave(
    me: Usage, others: list[Usage], surge: int, unavailable: int
) -> None:
    share = share_of(Budget(9, 1, 1), me, others)
    assert share.bounds == Bounds(me.desired, surge, unavailable)
    assert share.alone == Bounds(me.desired, 1, min(1, me.desired))


def test_a_share_names_those_who_use_the_budget_or_go_on_first() -> None:
    others = [Usage("c", 3, missing=1), Usage("idle", 3), Usage("b", 3, updating=True)]
    assert share_of(Budget(9, 1, 1), ME, others).users == ("b", "c")
