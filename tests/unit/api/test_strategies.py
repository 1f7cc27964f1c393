"""Surge and unavailability of each strategy, as the facts' formulas have them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcm.api.machine import (
    DeploymentStrategy,
    InPlaceUpdate,
    MachineDeploymentSpec,
    RollingUpdate,
)
from mcm.api.strategies import surge_of, unavailable_of

Number = int | str


def rolling(replicas: int, surge: Number, unavailable: Number) -> MachineDeploymentSpec:
    block = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    strategy = DeploymentStrategy(type="RollingUpdate", rolling_update=block)
    return MachineDeploymentSpec(replicas=replicas, strategy=strategy)


def in_place(replicas: int, surge: Number, unavailable: Number) -> MachineDeploymentSpec:
    block = InPlaceUpdate(max_surge=surge, max_unavailable=unavailable, orchestration_type="Auto")
    strategy = DeploymentStrategy(type="InPlaceUpdate", in_place_update=block)
    return MachineDeploymentSpec(replicas=replicas, strategy=strategy)


@pytest.mark.parametrize("made", [rolling, in_place])
@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "numbers"),
    [
        (3, 1, 0, (1, 0)),
        (10, "25%", "25%", (3, 2)),
        (4, "25%", "25%", (1, 1)),
        (1, "1%", "99%", (1, 0)),
        (0, "25%", "25%", (0, 0)),
        (0, 2, 1, (2, 1)),
        (7, "0%", "100%", (0, 7)),
        (3, "200%", 0, (6, 0)),
        (-3, "50%", "50%", (0, 0)),
    ],
)
def test_percentages_are_rounded_up_for_surge_and_down_for_unavailable(
    made: Callable[[int, Number, Number], MachineDeploymentSpec],
    replicas: int,
    surge: Number,
    unavailable: Number,
    numbers: tuple[int, int],
) -> None:
    spec = made(replicas, surge, unavailable)
    assert (surge_of(spec), unavailable_of(spec)) == numbers


def test_a_rolling_update_that_says_nothing_replaces_one_with_one_more_on_top() -> None:
    spec = MachineDeploymentSpec(replicas=5)
    assert (surge_of(spec), unavailable_of(spec)) == (1, 1)


@pytest.mark.parametrize("kind", ["Recreate", "InPlaceUpdate"])
def test_a_strategy_without_a_block_of_its_own_has_no_surge(kind: str) -> None:
    left_over = RollingUpdate(max_surge=2, max_unavailable=2)
    strategy = DeploymentStrategy(type=kind, rolling_update=left_over)
    spec = MachineDeploymentSpec(replicas=5, strategy=strategy)
    assert (surge_of(spec), unavailable_of(spec)) == (0, 0)
