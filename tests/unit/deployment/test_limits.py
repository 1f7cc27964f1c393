from __future__ import annotations

import pytest

from mcm.api.machine import DeploymentStrategy, MachineDeploymentSpec
from mcm.controllers.deployment.limits import Limits, limits_of
from tests.unit.deployment.fleet_model import Number, rolling


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
    limits = limits_of(spec)
    assert (limits.surge, limits.unavailable) == wanted
    assert limits.desired == replicas


@pytest.mark.parametrize("kind", ["Recreate", "InPlaceUpdate"])
def test_other_strategies_have_neither(kind: str) -> None:
    spec = MachineDeploymentSpec(replicas=4, strategy=DeploymentStrategy(type=kind))
    assert limits_of(spec) == Limits(4)


def test_a_strategy_that_says_nothing_replaces_one_at_a_time() -> None:
    assert limits_of(MachineDeploymentSpec(replicas=4)) == Limits(4, surge=1, unavailable=1)


def test_a_deployment_of_none_may_have_none() -> None:
    assert (Limits(0, surge=3).most, Limits(0, surge=3).least) == (0, 0)
    assert (Limits(4, surge=1, unavailable=2).most, Limits(4, unavailable=2).least) == (5, 2)
