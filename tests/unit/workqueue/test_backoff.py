from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.workqueue.backoff import EXACT, FULL, Backoff, Spread, longer_by, shorter_by

CHANCES = st.floats(0, 1, exclude_max=True)


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(5.0, 30.0)
    assert [backoff.delay(n) for n in range(5)] == [5, 10, 20, 30, 30]


def test_waits_grow_by_the_factor_asked_for() -> None:
    assert [Backoff(1.0, 100.0, factor=1.5).delay(n) for n in range(3)] == [1, 1.5, 2.25]
    assert {Backoff(2.0, 100.0, factor=1.0).delay(n) for n in range(9)} == {2.0}


@pytest.mark.parametrize(
    ("spread", "shortest", "middle"),
    [(EXACT, 8.0, 8.0), (FULL, 0.0, 4.0), (longer_by(0.25), 8.0, 9.0), (shorter_by(0.25), 8, 7)],
)
def test_chance_chooses_within_the_spread(spread: Spread, shortest: float, middle: float) -> None:
    backoff = Backoff(1.0, 60.0, spread=spread)
    assert backoff.delay(3, 0.0) == shortest
    assert backoff.delay(3, 0.5) == middle
    assert backoff.length(3) == 8.0


@given(
    first=st.floats(0.001, 100),
    times=st.floats(1, 1000),
    factor=st.floats(1, 10),
    spread=st.sampled_from([EXACT, FULL, longer_by(0.5), shorter_by(0.25)]),
    failures=st.integers(0, 10_000) | st.integers(0, 2**70),
    chance=CHANCES,
)
def test_no_wait_leaves_its_bounds_however_many_failures_there_were(
    first: float, times: float, factor: float, spread: Spread, failures: int, chance: float
) -> None:
    backoff = Backoff(first, first * times, factor, spread)
    wait = backoff.delay(failures, chance)
    assert min(spread) * first <= wait <= max(spread) * first * times
    assert backoff.length(failures) <= backoff.length(failures + 1)


def test_an_outage_without_end_overflows_nothing() -> None:
    assert Backoff(0.005, 1000.0).delay(10_000) == 1000.0
    assert Backoff(1e300, 1e308).delay(1020) == 1e308


@pytest.mark.parametrize(
    ("first", "longest", "factor", "spread"),
    [(0, 1, 2, EXACT), (-1, 1, 2, EXACT), (2, 1, 2, EXACT), (1, 2, 0.5, EXACT), (1, 2, 2, (-1, 1))],
)
def test_what_could_not_be_waited_for_is_refused(
    first: float, longest: float, factor: float, spread: Spread
) -> None:
    with pytest.raises(ValueError):
        Backoff(first, longest, factor, spread)
