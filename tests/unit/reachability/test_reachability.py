from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from mcm.client.errors import KubeError, NotFound, ServerError, TransportError
from mcm.clock import LoopClock
from mcm.controllers.reachability.probing import ReachabilityProbe
from mcm.controllers.reachability.state import (
    Reachability,
    ReachabilityState,
    no_earlier_than,
)
from mcm.simulation.virtualtime import run_virtual

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def test_at_first_all_is_reachable_and_no_timeout_is_touched() -> None:
    assert ReachabilityState(tolerance=30).reachability == Reachability(
        reachable=True, restored_at=None
    )


def test_destruction_stops_at_the_first_miss() -> None:
    state = ReachabilityState(tolerance=30)
    state.missed(monotonic=0)
    assert not state.reachability.reachable


def test_a_short_outage_leaves_the_timeouts_alone() -> None:
    state = ReachabilityState(tolerance=30)
    state.missed(monotonic=0)
    assert not state.answered(now=at(29), monotonic=29)
    assert state.reachability == Reachability(reachable=True, restored_at=None)


def test_after_a_longer_outage_timeouts_start_anew() -> None:
    state = ReachabilityState(tolerance=30)
    state.missed(monotonic=0)
    state.missed(monotonic=20)
    assert state.answered(now=at(30), monotonic=30)
    assert state.reachability == Reachability(reachable=True, restored_at=at(30))
    state.answered(now=at(90), monotonic=90)
    assert state.reachability.restored_at == at(30)


def test_two_short_outages_far_apart_are_two_short_ones() -> None:
    state = ReachabilityState(tolerance=30)
    state.missed(monotonic=0)
    state.answered(now=at(5), monotonic=5)
    state.missed(monotonic=10_000)
    assert not state.answered(now=at(10_005), monotonic=10_005)


@given(st.lists(st.booleans(), max_size=20))
def test_servers_are_reachable_exactly_if_the_last_probe_was_answered(answers: list[bool]) -> None:
    state, time = ReachabilityState(tolerance=30), 0.0
    for answered in answers:
        time += 10
        if answered:
            state.answered(now=at(time), monotonic=time)
        else:
            state.missed(monotonic=time)
        assert state.reachability.reachable is answered


@pytest.mark.parametrize(
    ("restored", "led_since", "wanted"),
    [
        (None, None, None),
        (None, 50, 50),
        (40, None, 40),
        (40, 50, 50),
        (60, 50, 60),
        (50, 50, 50),
    ],
)
@pytest.mark.parametrize("reachable", [True, False])
def test_timeouts_start_at_the_later_of_recovery_and_leadership(
    restored: float | None, led_since: float | None, wanted: float | None, *, reachable: bool
) -> None:
    def moment(seconds: float | None) -> datetime | None:
        return None if seconds is None else at(seconds)

    servers = Reachability(reachable=reachable, restored_at=moment(restored))
    assert no_earlier_than(servers, moment(led_since)) == Reachability(
        reachable=reachable, restored_at=moment(wanted)
    )


class Cluster:
    """Answers probes with the error it was given, or hangs."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.error: KubeError | None = NotFound(404)
        self.hangs = False
        self.asked = 0

    async def probe(self) -> object:
        self.asked += 1
        if self.hangs:
            await self._clock.sleep(1e6)
        if self.error is not None:
            raise self.error
        return object()


def virtually(test: Callable[[], Coroutine[object, object, None]]) -> Callable[[], None]:
    def run() -> None:
        run_virtual(test)

    run.__name__ = test.__name__
    return run


class Watch:
    def __init__(self) -> None:
        self.clock = LoopClock(EPOCH)
        self.control, self.target = Cluster(self.clock), Cluster(self.clock)
        self.troubles: dict[str, str] = {}
        self.recoveries = 0
        self.registry = CollectorRegistry()
        self.probe = ReachabilityProbe(
            {"control": self.control.probe, "target": self.target.probe},
            mirrors_troubled=lambda: self.troubles,
            recovered=self._recovered,
            timeout=30.0,
            period=60.0,
            clock=self.clock,
            registry=self.registry,
        )

    def _recovered(self) -> None:
        self.recoveries += 1

    @property
    def frozen(self) -> float | None:
        return self.registry.get_sample_value("mcm_machine_controller_frozen")


@virtually
async def test_that_the_probes_object_does_not_exist_is_the_answer_wanted() -> None:
    watch = Watch()
    assert (await watch.probe.reconcile("k")).after == 60.0
    assert watch.probe.reachability.reachable
    assert watch.frozen == 0


@pytest.mark.parametrize("error", [ServerError(500), TransportError("reset")])
def test_any_other_answer_means_unreachable_and_is_asked_again_sooner(error: KubeError) -> None:
    @virtually
    async def main() -> None:
        watch = Watch()
        watch.target.error = error
        assert (await watch.probe.reconcile("k")).after == 6.0
        assert not watch.probe.reachability.reachable
        assert watch.frozen == 1
        watch.target.error = None
        await watch.clock.sleep(40)
        await watch.probe.reconcile("k")
        assert watch.probe.reachability == Reachability(reachable=True, restored_at=at(40))
        assert watch.recoveries == 1
        assert watch.frozen == 0

    main()


@virtually
async def test_a_probe_that_hangs_is_given_up_in_time() -> None:
    watch = Watch()
    watch.control.hangs = True
    await watch.probe.reconcile("k")
    assert watch.clock.monotonic() == 30.0
    assert not watch.probe.reachability.reachable


@virtually
async def test_a_mirror_that_went_silent_counts_as_unreachable_too() -> None:
    watch = Watch()
    watch.troubles = {"target/nodes": "silent for 200 s"}
    await watch.probe.reconcile("k")
    assert not watch.probe.reachability.reachable
    assert watch.control.asked == watch.target.asked == 1


@pytest.mark.parametrize(
    ("troubled", "only_target"),
    [
        ({"target/nodes": "silent"}, True),
        ({"target/nodes": "silent", "target/pods": "silent"}, True),
        ({"control/machines": "silent"}, False),
        ({"target/nodes": "silent", "control/machines": "silent"}, False),
    ],
)
def test_whether_the_machines_can_still_be_told_is_known(
    troubled: dict[str, str], *, only_target: bool
) -> None:
    @virtually
    async def main() -> None:
        watch = Watch()
        watch.troubles = troubled
        await watch.probe.reconcile("k")
        assert watch.probe.reachability == Reachability(
            reachable=False, only_target_lost=only_target
        )
        watch.troubles = {}
        await watch.probe.reconcile("k")
        assert watch.probe.reachability == Reachability()

    main()


@virtually
async def test_a_blip_hours_after_another_freezes_no_longer_than_itself() -> None:
    """Nothing of the first one is left that the second would be added to."""
    watch = Watch()
    for _ in range(3):
        watch.target.error = ServerError(500)
        await watch.probe.reconcile("k")
        assert watch.frozen == 1
        watch.target.error = NotFound(404)
        await watch.clock.sleep(6)
        await watch.probe.reconcile("k")
        assert watch.frozen == 0
        assert watch.probe.reachability == Reachability(reachable=True, restored_at=None)
        await watch.clock.sleep(4 * 3600)
