"""The numbers of the Go original's formulas, and where ours are meant to differ."""

from __future__ import annotations

import math
import random

import pytest

from mcm.api.machine import DeploymentStrategy, MachineDeploymentSpec, RollingUpdate
from mcm.controllers.deployment.fleet import Fleet, SetState
from mcm.controllers.deployment.sizes import scaling
from mcm.controllers.deployment.sizes.bounds import Bounds, bounds_of
from mcm.controllers.deployment.sizes.rolling import rolling_step
from tests.unit.deployment.states import fleet, state


@pytest.mark.parametrize("replicas", [0, 1, 2, 3, 5, 7, 10, 33, 100])
@pytest.mark.parametrize("percent", [0, 1, 10, 25, 33, 50, 99, 100])
def test_percentages_round_up_for_surge_and_down_for_unavailable(
    replicas: int, percent: int
) -> None:
    limits = _bounds(replicas, f"{percent}%", f"{percent}%")
    surge = math.ceil(percent * replicas / 100)
    unavailable = math.floor(percent * replicas / 100)
    if surge == unavailable == 0:
        unavailable = 1
    assert (limits.surge, limits.unavailable) == (surge, min(unavailable, replicas))


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "most", "least"),
    [
        (3, 1, 0, 4, 3),
        (3, 0, 1, 3, 2),
        (3, 0, 0, 3, 2),
        (3, 0, 9, 3, 0),
        (3, 9, 0, 12, 3),
        (10, "25%", "25%", 13, 8),
        (2, "1%", "25%", 3, 2),
        (2, "0%", "1%", 2, 1),
        (1, "0%", "1%", 1, 0),
        (0, 1, 1, 0, 0),
    ],
)
def test_the_bounds_of_a_strategy(
    replicas: int, surge: int | str, unavailable: int | str, most: int, least: int
) -> None:
    limits = _bounds(replicas, surge, unavailable)
    assert (limits.most, limits.least) == (most, least)


@pytest.mark.parametrize("desired", range(7))
@pytest.mark.parametrize("surge", [1, 2, 3])
def test_a_new_set_grows_by_what_is_missing_to_the_limit(desired: int, surge: int) -> None:
    """min(R + surge - machines there are, R - size). Theirs reads the sets' statuses, in which a
    set that was just resized still has no machines, and so grows it twice (W13). Ours counts what
    was asked for, too, and never exceeds the surge."""
    for has in range(desired + 1):
        for old in range(desired + surge + 1):
            new, other = state("new", has), state("old", old)
            limits = Bounds(desired, surge=surge, unavailable=0)
            growth = min(desired + surge - has - old, desired - has) if desired else 0
            step = rolling_step(new, fleet(new, other), limits)
            assert step.get("new", has) - has == max(0, growth)


@pytest.mark.parametrize(
    ("old", "new", "before", "after", "sizes"),
    [
        ((8,), 5, (10, 3), (5, 2), (4, 3)),
        ((5, 5), 3, (10, 3), (6, 3), (3, 3, 3)),
        ((10,), 1, (10, 1), (5, 1), (5, 1)),
        ((2,), 2, (3, 1), (1, 1), (1, 1)),
        ((3,), 3, (5, 1), (0, 1), (0, 0)),
    ],
)
def test_a_scale_down_in_an_update_is_shared_in_proportion(
    old: tuple[int, ...],
    new: int,
    before: tuple[int, int],
    after: tuple[int, int],
    sizes: tuple[int, ...],
) -> None:
    assert _scaled(old, new, before, after) == sizes


def test_random_shares_are_those_of_the_formula() -> None:
    """Of all machines that serve, so that ours need not spare any. The remainder goes to the
    largest set; where that has nothing left to give, ours takes the rest from the next, and theirs
    leaves it."""
    chance = random.Random(5)
    compared = 0
    while compared < 2000:
        desired, surge = chance.randint(1, 20), chance.randint(0, 4)
        old = tuple(chance.randint(1, 10) for _ in range(chance.randint(1, 3)))
        new = max(1, desired + surge - sum(old))
        wanted = chance.randint(0, desired)
        total, most = sum(old) + new, wanted + surge if wanted else 0
        if total <= most or wanted == desired or new == wanted:
            continue
        before, after = (desired, surge), (wanted, surge)
        assert _scaled(old, new, before, after) == _formula((*old, new), before, most)
        compared += 1


def _formula(sizes: tuple[int, ...], before: tuple[int, int], most: int) -> tuple[int, ...]:
    """Sets by size, ties older first; each loses what lies over its rounded share."""
    limit, left = sum(before), sum(sizes) - most
    result = list(sizes)
    order = sorted(range(len(sizes)), key=lambda n: -sizes[n])
    for number in order:
        share = math.floor(sizes[number] * most / limit + 0.5)
        taken = max(0, min(sizes[number] - share, left))
        result[number] -= taken
        left -= taken
    for number in order:
        taken = min(result[number], left)
        result[number] -= taken
        left -= taken
    return tuple(result)


def _scaled(
    old: tuple[int, ...], new: int, before: tuple[int, int], after: tuple[int, int]
) -> tuple[int, ...]:
    desired, surge = before
    sets = [
        SetState(uid, n, (True,) * n, reported=n, desired=desired, most=desired + surge)
        for uid, n in [*((f"old-{i}", n) for i, n in enumerate(old)), ("new", new)]
    ]
    limits = Bounds(after[0], surge=after[1], unavailable=after[0])
    targets = scaling.sizes(Fleet(new=sets[-1], old=tuple(sets[:-1])), limits)
    return tuple(targets.get(s.uid, s.replicas) for s in sets)


def _bounds(replicas: int, surge: int | str, unavailable: int | str) -> Bounds:
    block = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    strategy = DeploymentStrategy(type="RollingUpdate", rolling_update=block)
    return bounds_of(MachineDeploymentSpec(replicas=replicas, strategy=strategy))
