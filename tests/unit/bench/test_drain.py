"""The benchmark of drains in small: each takes as long as its longest chain, and no longer."""

from __future__ import annotations

from functools import partial

import pytest

from bench.drain import LIMIT, Cost, many_nodes, one_node
from bench.drain_load import Disks, Load, Replicas, longest
from mcm.simulation.virtualtime import run_virtual

_LATENCY = 0.005


@pytest.mark.parametrize(
    ("load", "seconds"),
    [
        (Disks("d", pods=3, termination=1.0, detach=0.6, attach=5.0), 19.8),
        (Replicas("r", pods=40, termination=5.0, at_once=10), 8.0),
        (Replicas("r", pods=41, termination=5.0, at_once=10), 9.0),
        (Replicas("r", pods=40, termination=25.0), 25.0),
    ],
)
def test_a_chain_is_as_long_as_its_steps(load: Load, seconds: float) -> None:
    assert load.chain().seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "loads",
    [
        pytest.param(
            (
                Disks("fast", pods=3, termination=1.0, detach=0.6, attach=3.0),
                Disks("slow", pods=2, termination=1.0, detach=2.0, attach=8.0),
                Replicas("free", pods=6, termination=10.0),
            ),
            id="disks of two drivers side by side",
        ),
        pytest.param(
            (
                Disks("fast", pods=1, termination=1.0, detach=0.6, attach=3.0),
                Replicas("guarded", pods=16, termination=3.0, at_once=1),
            ),
            id="a budget that is used up again and again",
        ),
    ],
)
def test_a_full_node_takes_as_long_as_its_longest_chain(loads: tuple[Load, ...]) -> None:
    cost = run_virtual(partial(one_node, loads, _LATENCY))
    assert cost.ideal_seconds == pytest.approx(longest(loads).seconds)
    _check(cost, pods=sum(load.pods for load in loads))


def test_all_nodes_of_a_fleet_take_as_long_as_the_slowest_pod() -> None:
    _check(run_virtual(partial(many_nodes, 6, 5, _LATENCY)), pods=30)


def _check(cost: Cost, *, pods: int) -> None:
    assert 1.0 <= cost.ratio <= LIMIT
    assert (cost.pods, cost.evictions, cost.refused) == (pods, pods, 0)
