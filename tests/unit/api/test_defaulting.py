from __future__ import annotations

import pytest

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import (
    DeploymentStrategy,
    InPlaceUpdate,
    MachineDeploymentSpec,
    RollingUpdate,
)

ONE_BY_ONE = RollingUpdate(max_surge=1, max_unavailable=1)
QUARTER = RollingUpdate(max_surge="25%", max_unavailable=0)
IN_PLACE = InPlaceUpdate(max_surge=0, max_unavailable=1, orchestration_type="Auto")


@pytest.mark.parametrize(
    ("given", "acted_by"),
    [
        (
            DeploymentStrategy(),
            DeploymentStrategy(type="RollingUpdate", rolling_update=ONE_BY_ONE),
        ),
        (
            DeploymentStrategy(type="RollingUpdate"),
            DeploymentStrategy(type="RollingUpdate", rolling_update=ONE_BY_ONE),
        ),
        (
            DeploymentStrategy(rolling_update=QUARTER),
            DeploymentStrategy(type="RollingUpdate", rolling_update=QUARTER),
        ),
        (
            DeploymentStrategy(type="RollingUpdate", rolling_update=RollingUpdate(max_surge=2)),
            DeploymentStrategy(type="RollingUpdate", rolling_update=RollingUpdate(max_surge=2)),
        ),
        (DeploymentStrategy(type="Recreate"), DeploymentStrategy(type="Recreate")),
        (DeploymentStrategy(type="InPlaceUpdate"), DeploymentStrategy(type="InPlaceUpdate")),
        (
            DeploymentStrategy(type="InPlaceUpdate", in_place_update=IN_PLACE),
            DeploymentStrategy(type="InPlaceUpdate", in_place_update=IN_PLACE),
        ),
        (DeploymentStrategy(type="Foo"), DeploymentStrategy(type="Foo")),
    ],
)
def test_the_strategy_to_act_by(given: DeploymentStrategy, acted_by: DeploymentStrategy) -> None:
    assert defaulted_strategy(MachineDeploymentSpec(strategy=given)) == acted_by
