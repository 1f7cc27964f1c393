from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.controllers.machine.health.meltdown.hold import CALM, Counts, Hold, Threshold
from tests.unit.machine.objects import after

DEFAULT = Threshold(0.55, 3)


@pytest.mark.parametrize(
    ("unhealthy", "members", "reached"),
    [
        (0, 0, False),
        (0, 10, False),
        (1, 1, False),
        (2, 2, False),
        (3, 3, True),
        (3, 4, True),
        (3, 5, True),
        (3, 6, False),
        (5, 10, False),
        (6, 10, True),
        (10, 10, True),
        (54, 100, False),
        (55, 100, True),
    ],
)
def test_where_the_threshold_is(unhealthy: int, members: int, *, reached: bool) -> None:
    assert DEFAULT.is_reached(Counts(members, unhealthy)) is reached


@pytest.mark.parametrize(("share", "least"), [(1.5, 1), (1.0, 4)])
def test_a_threshold_above_everything_is_never_reached(share: float, least: int) -> None:
    assert not Threshold(share, least).is_reached(Counts(3, 3))


counts = st.integers(0, 40).flatmap(
    lambda members: st.builds(Counts, st.just(members), st.integers(0, members))
)
thresholds = st.builds(Threshold, st.floats(0.01, 1.2), st.integers(0, 6))


@given(thresholds, counts)
def test_one_more_sick_machine_never_lifts_a_threshold(threshold: Threshold, c: Counts) -> None:
    if c.unhealthy == c.members:
        return
    worse = Counts(c.members, c.unhealthy + 1)
    assert threshold.is_reached(worse) or not threshold.is_reached(c)


@given(thresholds, counts)
def test_one_more_healthy_machine_never_reaches_it(threshold: Threshold, c: Counts) -> None:
    better = Counts(c.members + 1, c.unhealthy)
    assert threshold.is_reached(c) or not threshold.is_reached(better)


@given(thresholds)
def test_a_fleet_without_sick_machines_never_reaches_it(threshold: Threshold) -> None:
    assert not threshold.is_reached(Counts(10, 0))


def test_a_hold_begins_at_once_and_ends_after_a_calm() -> None:
    hold = Hold().step(reached=True, now=after(), monotonic=0)
    assert hold.on
    assert hold.ends_in(0) is None
    hold = hold.step(reached=False, now=after(seconds=5), monotonic=5)
    assert hold.on
    assert hold.ends_in(15) == CALM - 10
    hold = hold.step(reached=False, now=after(seconds=65), monotonic=65)
    assert hold == Hold(ended_at=after(seconds=65))


def test_a_relapse_starts_the_calm_anew() -> None:
    hold = Hold(on=True, calm_since=0.0).step(reached=True, now=after(), monotonic=CALM - 1)
    assert hold == Hold(on=True)
    hold = hold.step(reached=False, now=after(), monotonic=CALM)
    assert hold.step(reached=False, now=after(), monotonic=2 * CALM - 1).on


steps = st.lists(st.tuples(st.booleans(), st.integers(1, 200)), max_size=30)


@given(steps)
def test_a_hold_is_on_while_the_threshold_is_reached_and_never_for_ever_after(
    history: list[tuple[bool, int]],
) -> None:
    hold, time, reached_at = Hold(), 0.0, None
    for reached, pause in history:
        time += pause
        before = hold
        hold = hold.step(reached=reached, now=after(seconds=time), monotonic=time)
        if reached:
            assert hold.on
            reached_at = time
        elif hold.on:
            left = hold.ends_in(time)
            assert left is not None
            assert 0 < left <= CALM
        if before.on and not hold.on:
            assert reached_at is not None
            assert time - reached_at >= CALM
            assert hold.ended_at == after(seconds=time)
    last = hold.step(reached=False, now=after(seconds=time), monotonic=time)
    end = time + (last.ends_in(time) or 0.0)
    assert not last.step(reached=False, now=after(seconds=end), monotonic=end).on


@given(steps)
def test_how_often_one_asks_meanwhile_changes_nothing(history: list[tuple[bool, int]]) -> None:
    once, often, time = Hold(), Hold(), 0.0
    for reached, pause in history:
        time += pause
        now = after(seconds=time)
        once = once.step(reached=reached, now=now, monotonic=time)
        for _ in range(3):
            often = often.step(reached=reached, now=now, monotonic=time)
        assert once == often
