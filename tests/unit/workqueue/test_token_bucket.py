from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.workqueue.token_bucket import TokenBucket


def test_a_burst_is_free_and_what_follows_comes_at_the_rate() -> None:
    bucket = TokenBucket(rate=2, burst=3)
    assert [bucket.reserve(0.0) for _ in range(5)] == [0, 0, 0, 0.5, 1.0]


def test_an_idle_bucket_saves_up_no_more_than_the_burst() -> None:
    bucket = TokenBucket(rate=10, burst=2)
    assert [bucket.reserve(1000.0) for _ in range(3)] == [0, 0, 0.1]


def test_a_rate_must_be_positive() -> None:
    with pytest.raises(ValueError):
        TokenBucket(rate=0, burst=1)


@given(
    rate=st.floats(min_value=0.1, max_value=100),
    burst=st.integers(1, 50),
    gaps=st.lists(st.floats(min_value=0, max_value=5), max_size=60),
)
def test_no_window_ever_admits_more_than_burst_and_rate(
    rate: float, burst: int, gaps: list[float]
) -> None:
    bucket = TokenBucket(rate=rate, burst=burst)
    now = 0.0
    starts = []
    for gap in gaps:
        now += gap
        starts.append(now + bucket.reserve(now))
    for i, first in enumerate(starts):
        for j in range(i, len(starts)):
            assert j - i + 1 <= burst + (starts[j] - first) * rate + 1e-6


@pytest.mark.parametrize(("rate", "burst"), [(float("nan"), 1), (-1, 1), (1, 0), (1, 0.5)])
def test_a_bucket_that_could_never_give_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError):
        TokenBucket(rate=rate, burst=burst)


def test_taking_never_owes() -> None:
    bucket = TokenBucket(rate=1, burst=2)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, False, False]
    assert [bucket.take(1.0) for _ in range(2)] == [True, False]


@given(rate=st.sampled_from([0.1, 1 / 3, 1 / 300, 0.7, 3, 10]), burst=st.integers(1, 30))
def test_rounding_costs_no_token(rate: float, burst: int) -> None:
    bucket = TokenBucket(rate=rate, burst=burst)
    assert all(bucket.take(0.0) for _ in range(burst))
    assert all(bucket.take(n / rate) for n in range(1, 50))


def test_a_reservation_given_back_is_the_next_ones() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    assert [bucket.reserve(0.0) for _ in range(2)] == [0, 1]
    bucket.give_back()
    assert bucket.reserve(0.0) == 1
    for _ in range(9):
        bucket.give_back()
    assert [bucket.take(0.0) for _ in range(2)] == [True, False], "never more than the burst"


@given(back=st.floats(0, 1e6), take=st.lists(st.booleans(), max_size=20), burst=st.integers(1, 5))
def test_a_clock_that_goes_back_makes_no_tokens(back: float, take: list[bool], burst: int) -> None:
    bucket = TokenBucket(rate=1, burst=burst)
    got = int(bucket.take(1e6))
    for forward in take:
        got += bucket.take(1e6 if forward else 1e6 - back)
    assert got <= burst
