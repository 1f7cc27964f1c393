"""What a member of a pool says, and what is said of numbers that allow nothing: tables."""

from __future__ import annotations

from datetime import datetime

import pytest

from mcm.api.machine import DeploymentStrategy, MachineDeploymentCondition, MachineDeploymentSpec
from mcm.controllers.conditions import find
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.status.strategy_warning import with_strategy_warning
from mcm.controllers.deployment.surge_pool.budget import Budget, Share
from mcm.controllers.deployment.surge_pool.conditions import with_pool
from mcm.controllers.deployment.surge_pool.turns import Turn
from tests.unit.deployment.fleet_model import Number, rolling
from tests.unit.deployment.objects import NOW, ago, progressing

SAME = ((1, 0),)
DIFFERENT = ((1, 0), (2, 1))


def turn(
    *, waits: bool, users: tuple[str, ...] = ("b",), declared: tuple[tuple[int, int], ...] = SAME
) -> Turn:
    share = Share(Bounds(3), Bounds(3, 1), users)
    return Turn("workers", Budget(9, 1, 0, declared), share, waits)


def said(
    of: Turn | None, before: tuple[MachineDeploymentCondition, ...] = (), now: datetime = NOW
) -> MachineDeploymentCondition | None:
    return find(with_pool(before, of, now), "SurgePool")


def test_whoever_waits_says_for_whom() -> None:
    one = said(turn(waits=True))
    assert one is not None
    assert (one.status, one.reason) == ("False", "WaitingForSurgePool")
    assert one.message == 'waits for surge pool "workers": its budget is used by deployment "b"'
    two = said(turn(waits=True, users=("b", "c")))
    assert two is not None
    assert two.message.endswith('used by deployments "b", "c"')


def test_other_numbers_are_told_whether_it_waits_or_not() -> None:
    text = (
        'the members of surge pool "workers" declare different numbers in spec.strategy; the '
        "smallest count: maxSurge 1, maxUnavailable 0"
    )
    alone = said(turn(waits=False, declared=DIFFERENT))
    assert alone is not None
    assert (alone.reason, alone.message) == ("NumbersDiffer", text)
    both = said(turn(waits=True, declared=DIFFERENT))
    assert both is not None
    assert both.reason == "WaitingForSurgePool"
    assert both.message.endswith(f"; {text}")


def test_nothing_is_said_where_nothing_is_to_be_said_and_nothing_is_said_twice() -> None:
    assert with_pool((), None, NOW) == ()
    assert with_pool((), turn(waits=False), NOW) == ()
    waiting = with_pool((), turn(waits=True), ago(60))
    assert with_pool(waiting, turn(waits=True), NOW) == waiting
    assert with_pool(waiting, turn(waits=False), NOW) == ()
    assert with_pool(waiting, None, NOW) == ()


def test_the_time_a_member_waits_is_not_of_its_deadline() -> None:
    before = (progressing("MachineSetUpdated", updated=600, moved=900),)
    waiting = with_pool(before, turn(waits=True), ago(300))
    assert find(waiting, "Progressing") == before[0]
    (after,) = with_pool(waiting, turn(waits=False), NOW)
    assert after.last_update_time == NOW
    assert after.last_transition_time == before[0].last_transition_time


def warning(
    strategy: DeploymentStrategy, replicas: int = 3, of: int | None = None
) -> MachineDeploymentCondition | None:
    spec = MachineDeploymentSpec(replicas=replicas, strategy=strategy)
    return find(with_strategy_warning((), spec, NOW, of=of), "StrategyAdjusted")


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "of", "warned"),
    [
        (0, 0, 3, None, True),
        ("0%", "1%", 3, None, True),
        (0, "33%", 3, None, True),
        (0, "34%", 3, None, False),
        ("1%", 0, 3, None, False),
        (1, 0, 3, None, False),
        (0, 0, 0, None, False),  # nothing to replace
        (0, "34%", 1, 3, False),  # 34 % of the pool's 3
        (0, "33%", 1, 3, True),
    ],
)
def test_numbers_that_allow_nothing_are_warned_of(
    surge: Number, unavailable: Number, replicas: int, of: int | None, warned: bool
) -> None:
    assert (warning(rolling(surge, unavailable), replicas, of) is not None) == warned


def test_the_warning_names_both_fields_and_what_is_done_and_goes_once_it_is_mended() -> None:
    condition = warning(rolling(0, "1%"))
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "NothingReplaceable")
    assert condition.message == (
        "spec.strategy.rollingUpdate: maxSurge (0) and maxUnavailable (1%) both come to 0 "
        "machines, so that none could ever be replaced; maxUnavailable counts as 1 until one of "
        "them is raised"
    )
    mended = MachineDeploymentSpec(replicas=3, strategy=rolling(1, 0))
    assert with_strategy_warning((condition,), mended, NOW) == ()
    same = MachineDeploymentSpec(replicas=5, strategy=rolling(0, "1%"))
    assert with_strategy_warning((condition,), same, ago(-60)) == (condition,)


def test_recreate_needs_no_numbers() -> None:
    assert warning(DeploymentStrategy(type="Recreate")) is None
