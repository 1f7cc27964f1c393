"""From how many machines on sets are frozen and unfrozen: the facts' table, and what must hold."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import (
    DeploymentStrategy,
    InPlaceUpdate,
    MachineDeployment,
    MachineSet,
    RollingUpdate,
)
from mcm.controllers.overshooting.limits import Limits, Margins, SetLimits
from mcm.informers.store import Store
from tests.unit.deployment.objects import deployment, owned_set
from tests.unit.machineset.objects import machine_set

DEFAULTS = Margins(up=2, down=1)


def rolling(surge: int | str) -> DeploymentStrategy:
    block = RollingUpdate(max_surge=surge, max_unavailable=1)
    return DeploymentStrategy(type="RollingUpdate", rolling_update=block)


def in_place(surge: int | str) -> DeploymentStrategy:
    block = InPlaceUpdate(max_surge=surge, max_unavailable=1, orchestration_type="Auto")
    return DeploymentStrategy(type="InPlaceUpdate", in_place_update=block)


def limits_of(
    subject: MachineSet, *owners: MachineDeployment, margins: Margins = DEFAULTS
) -> Limits | None:
    deployments: Store[MachineDeployment] = Store()
    for owner in owners:
        deployments.put(owner)
    return SetLimits(deployments, margins).of(subject)


@pytest.mark.parametrize(
    ("replicas", "limits"), [(3, Limits(8, 7)), (0, Limits(2, 1)), (10, Limits(22, 21))]
)
def test_a_set_by_itself_may_have_twice_its_replicas(replicas: int, limits: Limits) -> None:
    assert limits_of(machine_set(replicas)) == limits


@pytest.mark.parametrize(
    ("replicas", "strategy", "limits"),
    [
        (2, rolling(1), Limits(5, 4)),
        (10, rolling("25%"), Limits(15, 14)),
        (0, rolling("25%"), Limits(2, 1)),
        (10, in_place("25%"), Limits(15, 14)),
        (4, in_place(0), Limits(6, 5)),
        (3, DeploymentStrategy(type="Recreate"), Limits(5, 4)),
        (3, DeploymentStrategy(), Limits(6, 5)),
    ],
)
def test_a_deployments_set_may_have_what_the_deployment_may_have(
    replicas: int, strategy: DeploymentStrategy, limits: Limits
) -> None:
    owner = deployment(replicas, strategy=strategy)
    for its_own in (0, 1, replicas, 99):
        assert limits_of(owned_set(replicas=its_own), owner) == limits


@pytest.mark.parametrize(
    ("margins", "replicas", "surge", "limits"),
    [
        (Margins(up=2, down=0), 3, 1, Limits(6, 5)),  # never at the same number
        (Margins(up=0, down=0), 3, 0, Limits(4, 3)),  # never with what is wanted
        (Margins(up=0, down=1), 3, 0, Limits(4, 3)),
        (Margins(up=0, down=1), 3, 1, Limits(4, 3)),
        (Margins(up=2, down=5), 10, 0, Limits(12, 10)),  # never below what is wanted
        (Margins(up=0, down=9), 0, 0, Limits(1, 0)),
        (Margins(up=5, down=2), 3, 0, Limits(8, 6)),
    ],
)
def test_no_flags_make_a_set_flap_or_freeze_for_ever(
    margins: Margins, replicas: int, surge: int, limits: Limits
) -> None:
    assert margins.of_deployment(replicas, surge) == limits


@given(
    up=st.integers(0, 50),
    down=st.integers(0, 50),
    replicas=st.integers(0, 99),
    by=st.integers(0, 9),
)
def test_whatever_the_flags_are(up: int, down: int, replicas: int, by: int) -> None:
    margins = Margins(up, down)
    for found in (margins.of_set(replicas), margins.of_deployment(replicas, by)):
        assert found.unfreeze_at < found.freeze_at
        assert replicas <= found.unfreeze_at
        assert found.freeze_at - found.unfreeze_at <= max(1, down)
    in_go = replicas + by + up
    assert margins.of_deployment(replicas, by).freeze_at == (in_go if by + up else replicas + 1)


def test_a_set_whose_deployment_is_gone_or_another_one_is_by_itself() -> None:
    alone = Limits(8, 7)
    assert limits_of(owned_set(replicas=3)) == alone
    other = deployment(3)
    meta = msgspec.structs.replace(other.metadata, uid="another")
    assert limits_of(owned_set(replicas=3), msgspec.structs.replace(other, metadata=meta)) == alone


def test_no_limit_follows_from_a_spec_that_is_invalid() -> None:
    assert limits_of(machine_set(-1)) is None
    assert limits_of(owned_set(), deployment(-1)) is None
    assert limits_of(owned_set(), deployment(3, strategy=rolling("many"))) is None


def test_a_deployment_that_cannot_be_read_is_not_taken_for_gone() -> None:
    deployments: Store[MachineDeployment] = Store()
    deployments.mark_unreadable("ns/pool", "replicas is no number")
    assert SetLimits(deployments, DEFAULTS).of(owned_set()) is None
