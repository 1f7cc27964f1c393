from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from mcm.client.errors import KubeError, NotFound, ServerError, TransportError
from mcm.clock import LoopClock
from mcm.controllers.reachability.check import ApiHealth, Eyesight, Vision
from mcm.simulation.virtualtime import run_virtual

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def test_at_first_all_is_clear_and_no_clock_is_touched() -> None:
    assert Eyesight(blink=30).vision == Vision(clear=True, clear_since=None)


def test_destruction_stops_at_the_first_miss() -> None:
    eyes = Eyesight(blink=30)
    eyes.missed(monotonic=0)
    assert not eyes.vision.clear


def test_a_blink_leaves_the_clocks_alone() -> None:
    eyes = Eyesight(blink=30)
    eyes.missed(monotonic=0)
    assert not eyes.saw(now=at(29), monotonic=29)
    assert eyes.vision == Vision(clear=True, clear_since=None)


def test_after_a_longer_blindness_clocks_start_anew() -> None:
    eyes = Eyesight(blink=30)
    eyes.missed(monotonic=0)
    eyes.missed(monotonic=20)
    assert eyes.saw(now=at(30), monotonic=30)
    assert eyes.vision == Vision(clear=True, clear_since=at(30))
    eyes.saw(now=at(90), monotonic=90)
    assert eyes.vision.clear_since == at(30)


def test_two_blinks_far_apart_are_two_blinks() -> None:
    eyes = Eyesight(blink=30)
    eyes.missed(monotonic=0)
    eyes.saw(now=at(5), monotonic=5)
    eyes.missed(monotonic=10_000)
    assert not eyes.saw(now=at(10_005), monotonic=10_005)


@given(st.lists(st.booleans(), max_size=20))
def test_vision_is_clear_exactly_if_the_last_look_was(looks: list[bool]) -> None:
    eyes, time = Eyesight(blink=30), 0.0
    for clear in looks:
        time += 10
        if clear:
            eyes.saw(now=at(time), monotonic=time)
        else:
            eyes.missed(monotonic=time)
        assert eyes.vision.clear is clear


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


class Watchman:
    def __init__(self) -> None:
        self.clock = LoopClock(EPOCH)
        self.control, self.target = Cluster(self.clock), Cluster(self.clock)
        self.troubles: dict[str, str] = {}
        self.recoveries = 0
        self.registry = CollectorRegistry()
        self.health = ApiHealth(
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
    watch = Watchman()
    assert (await watch.health.reconcile("k")).after == 60.0
    assert watch.health.vision.clear
    assert watch.frozen == 0


@pytest.mark.parametrize("error", [ServerError(500), TransportError("reset")])
def test_any_other_answer_is_blindness_and_is_looked_after_sooner(error: KubeError) -> None:
    @virtually
    async def main() -> None:
        watch = Watchman()
        watch.target.error = error
        assert (await watch.health.reconcile("k")).after == 6.0
        assert not watch.health.vision.clear
        assert watch.frozen == 1
        watch.target.error = None
        await watch.clock.sleep(40)
        await watch.health.reconcile("k")
        assert watch.health.vision == Vision(clear=True, clear_since=at(40))
        assert watch.recoveries == 1
        assert watch.frozen == 0

    main()


@virtually
async def test_a_probe_that_hangs_is_given_up_in_time() -> None:
    watch = Watchman()
    watch.control.hangs = True
    await watch.health.reconcile("k")
    assert watch.clock.monotonic() == 30.0
    assert not watch.health.vision.clear


@virtually
async def test_a_mirror_that_went_silent_is_blindness_too() -> None:
    watch = Watchman()
    watch.troubles = {"target/nodes": "silent for 200 s"}
    await watch.health.reconcile("k")
    assert not watch.health.vision.clear
    assert watch.control.asked == watch.target.asked == 1
