from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.sandbox.world.kinds import Deployment, ReplicaSet
from mcm.sandbox.world.rollouts import RolloutBounds, bounds_of, next_sizes
from mcm.sandbox.world.shares import share
from tests.unit.world.manifests import workload


def deployment(
    replicas: int, *, paused: bool = False, recreate: bool = False, **rolling: object
) -> Deployment:
    kind = "Recreate" if recreate else "RollingUpdate"
    strategy: dict[str, object] = {"type": kind}
    if rolling:
        strategy["rollingUpdate"] = rolling
    raw = workload("Deployment", replicas=replicas, paused=paused, strategy=strategy)
    return msgspec.convert(raw, Deployment)


def a_set(name: str, size: int, available: int | None = None) -> ReplicaSet:
    raw = {
        "metadata": {"name": name},
        "spec": {"replicas": size},
        "status": {"availableReplicas": size if available is None else available},
    }
    return msgspec.convert(raw, ReplicaSet)


@pytest.mark.parametrize(
    ("value", "of", "up", "found"),
    [
        (3, 10, True, 3),
        ("25%", 10, True, 3),
        ("25%", 10, False, 2),
        ("100%", 7, False, 7),
        ("4", 10, True, 4),
        ("many", 10, True, 0),
        (None, 10, True, 0),
    ],
)
def test_a_share_is_a_number_or_a_percentage(
    value: int | str | None, of: int, up: bool, found: int
) -> None:
    assert share(value, of, round_up=up) == found


@pytest.mark.parametrize(
    ("wanted", "bounds"),
    [
        (deployment(10), RolloutBounds(10, most=13, least=8)),
        (deployment(1), RolloutBounds(1, most=2, least=1)),
        (deployment(4, maxSurge=0, maxUnavailable=0), RolloutBounds(4, most=4, least=3)),
        (deployment(4, maxSurge="50%", maxUnavailable=1), RolloutBounds(4, most=6, least=3)),
        (deployment(4, recreate=True), RolloutBounds(4, most=4, least=0)),
        (deployment(0), RolloutBounds(0, most=0, least=0)),
    ],
)
def test_bounds_come_from_the_strategy(wanted: Deployment, bounds: RolloutBounds) -> None:
    assert bounds_of(wanted) == bounds


def test_a_first_rollout_starts_all_pods_at_once() -> None:
    assert next_sizes(deployment(3), a_set("new", 0), [], old_pods=0) == {"new": 3}


def test_the_new_set_grows_into_the_surge_and_the_old_shrinks_by_what_may_be_missing() -> None:
    found = next_sizes(deployment(10), a_set("new", 0), [a_set("old", 10)], old_pods=10)
    assert found == {"new": 3, "old": 8}


def test_pods_that_do_not_serve_go_before_those_that_do() -> None:
    old = [a_set("older", 5, 5), a_set("newer", 5, 0)]
    found = next_sizes(
        deployment(10, maxSurge=0, maxUnavailable=5), a_set("new", 0), old, old_pods=10
    )
    assert found == {"newer": 0}


def test_a_recreation_waits_until_the_last_old_pod_is_gone() -> None:
    wanted, new = deployment(3, recreate=True), a_set("new", 0)
    assert next_sizes(wanted, new, [a_set("old", 3)], old_pods=3) == {"old": 0}
    assert next_sizes(wanted, new, [a_set("old", 0)], old_pods=1) == {}
    assert next_sizes(wanted, new, [a_set("old", 0)], old_pods=0) == {"new": 3}


def test_a_paused_rollout_only_scales() -> None:
    wanted = deployment(5, paused=True)
    assert next_sizes(wanted, None, [a_set("old", 3)], old_pods=3) == {"old": 5}
    assert next_sizes(wanted, a_set("new", 2), [a_set("old", 3)], old_pods=3) == {}
    assert next_sizes(wanted, a_set("new", 0), [], old_pods=0) == {"new": 5}


@settings(deadline=None)
@given(
    replicas=st.integers(0, 12),
    surge=st.integers(0, 5),
    missing=st.integers(0, 5),
    olds=st.lists(st.integers(0, 8), max_size=3),
    start=st.integers(0, 12),
)
def test_whatever_the_strategy_a_rollout_keeps_its_limits_and_ends(
    replicas: int, surge: int, missing: int, olds: list[int], start: int
) -> None:
    wanted = deployment(replicas, maxSurge=surge, maxUnavailable=missing)
    limits = bounds_of(wanted)
    sizes = {"new": start, **{f"old{i}": size for i, size in enumerate(olds)}}
    serving = dict(sizes)
    for _ in range(200):
        sets = {name: a_set(name, size, serving[name]) for name, size in sizes.items()}
        old = [s for name, s in sets.items() if name != "new"]
        step = next_sizes(wanted, sets["new"], old, old_pods=0)
        before, served = sum(sizes.values()), sum(serving.values())
        sizes |= step
        serving = {name: min(serving[name], size) for name, size in sizes.items()}
        assert sum(sizes.values()) <= max(before, limits.most)
        assert sum(serving.values()) >= min(served, limits.least)
        if not step and serving == sizes:
            break
        late = [name for name, size in sizes.items() if serving[name] < size]
        if late:
            serving[late[0]] += 1
    assert sizes == {**dict.fromkeys(sizes, 0), "new": replicas}
