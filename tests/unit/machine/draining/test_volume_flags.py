"""What an operator sets about volumes on their way: how long they may take, how many at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mcm.controllers.settings import ControllerSettings
from tests.unit.machine.bench import Bench, bench, on_bench, with_settings
from tests.unit.machine.draining.cluster_of_volumes import ClusterOfVolumes

ONE_PASS = 0.3
GRACE = 30.0
"""Of the pods that a bench runs."""


async def with_pods(b: Bench, *names: str) -> None:
    """Pods with a volume each, that one node at a time may have."""
    await b.make_class()
    await b.running()
    for name in names:
        await b.attach(f"data-{name}")
        await b.run_pod(name, claims=(f"data-{name}",))


def most_at_a_time(cluster: ClusterOfVolumes) -> int:
    """How many pods were asked whose volumes were not attached elsewhere yet."""
    spans = [(asked, cluster.attached[f"data-{name}"]) for name, asked in cluster.asked.items()]
    return max(sum(a <= moment < b for a, b in spans) for moment, _ in spans)


@pytest.mark.parametrize(("adaptive", "most"), [(False, range(1, 2)), (True, range(4, 9))])
def test_lanes_widen_while_volumes_are_quick_only_if_that_is_asked_for(
    adaptive: bool, most: range
) -> None:
    @on_bench
    async def main() -> None:
        settings = with_settings(drain_adaptive_lanes=adaptive)
        async with bench(settings=settings) as b:
            await with_pods(b, *(f"v{n}" for n in range(10)))
            async with ClusterOfVolumes(b).running() as cluster:
                began = b.clock.monotonic()
                await b.delete_machine()
                await b.until_gone(within=120)
                took = b.clock.monotonic() - began
            one = cluster.grace + cluster.detach + cluster.attach
            assert most_at_a_time(cluster) in most
            assert took < 5 * one if adaptive else took >= 10 * one

    main()


@pytest.mark.parametrize("seconds", [5.0, 60.0])
def test_a_volume_that_does_not_leave_is_waited_for_as_long_as_the_flag_says(
    seconds: float,
) -> None:
    @on_bench
    async def main() -> None:
        settings = with_settings(pv_detach_timeout=timedelta(seconds=seconds))
        async with bench(settings=settings) as b:
            await with_pods(b, "v1", "v2")
            async with ClusterOfVolumes(b, detach=10_000.0).running() as cluster:
                await b.delete_machine()
                await b.settle(GRACE + seconds + 5)
            first, second = sorted(cluster.asked.values())
            assert second - first == pytest.approx(GRACE + seconds, abs=1.0 + ONE_PASS)

    main()


@pytest.mark.parametrize("seconds", [0.0, 2.0, 7.0])
def test_a_volume_that_does_not_arrive_is_waited_for_as_long_as_the_flag_says(
    seconds: float,
) -> None:
    @on_bench
    async def main() -> None:
        settings = with_settings(pv_reattach_timeout=timedelta(seconds=seconds))
        async with bench(settings=settings) as b:
            await with_pods(b, "v1", "v2")
            async with ClusterOfVolumes(b, attach=10_000.0).running() as cluster:
                await b.delete_machine()
                await b.settle(20)
            first, second = sorted(cluster.asked.values())
            left = first + cluster.grace + cluster.detach
            assert second - left == pytest.approx(seconds, abs=2 * ONE_PASS)

    main()


def test_by_default_pods_with_volumes_go_one_after_the_other_as_in_the_go_original() -> None:
    defaults = ControllerSettings()
    assert not defaults.drain_adaptive_lanes
    assert defaults.pv_detach_timeout == timedelta(minutes=2)
    assert defaults.pv_reattach_timeout == timedelta(seconds=90)
