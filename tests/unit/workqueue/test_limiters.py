"""Delays of the rate limiters: tables, and the law of the exponential one (W8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.workqueue import BucketLimiter, ExponentialLimiter, MaxOfLimiter, default_limiter


def test_exponential_delays_double_from_five_milliseconds() -> None:
    limiter = ExponentialLimiter[str]()
    delays = [limiter.delay("a", 0.0) for _ in range(5)]
    assert delays == [0.005, 0.01, 0.02, 0.04, 0.08]


def test_exponential_delays_of_one_key_do_not_touch_another() -> None:
    limiter = ExponentialLimiter[str]()
    for _ in range(4):
        limiter.delay("a", 0.0)
    assert limiter.delay("b", 0.0) == 0.005
    assert (limiter.failures("a"), limiter.failures("b"), limiter.failures("c")) == (4, 1, 0)


@given(st.integers(0, 3000))
def test_exponential_delays_stop_at_the_cap_and_never_overflow(failures: int) -> None:
    limiter = ExponentialLimiter[str](0.005, 1000.0)
    delay = 0.0
    for _ in range(failures + 1):
        delay = limiter.delay("a", 0.0)
    assert delay == min(0.005 * 2 ** min(failures, 100), 1000.0)


def test_forgetting_starts_again_at_the_first_delay() -> None:
    limiter = ExponentialLimiter[str]()
    limiter.delay("a", 0.0)
    limiter.delay("a", 0.0)
    limiter.forget("a")
    assert limiter.failures("a") == 0
    assert limiter.delay("a", 0.0) == 0.005


def test_bucket_lets_a_burst_through_and_then_spaces_by_its_rate() -> None:
    limiter = BucketLimiter[str](rate=10.0, burst=3)
    delays = [limiter.delay(str(n), 5.0) for n in range(6)]
    assert delays == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_bucket_refills_with_time_up_to_its_burst() -> None:
    limiter = BucketLimiter[str](rate=10.0, burst=3)
    for _ in range(5):
        limiter.delay("a", 0.0)
    assert limiter.delay("a", 0.4) == 0.0, "two tokens owed, four gained"
    delays = [limiter.delay("a", 1000.0) for _ in range(4)]
    assert delays == pytest.approx([0, 0, 0, 0.1]), "no more than the burst is saved up"


@given(st.lists(st.floats(0, 5), max_size=60))
def test_bucket_never_grants_more_than_burst_plus_rate_in_any_window(gaps: list[float]) -> None:
    limiter = BucketLimiter[str](rate=2.0, burst=5)
    now, granted = 0.0, list[float]()
    for gap in gaps:
        now += gap
        granted.append(now + limiter.delay("a", now))
    for first in range(len(granted)):
        for last in range(first, len(granted)):
            window = granted[last] - granted[first]
            assert last - first + 1 <= 5 + 2.0 * window + 1 + 1e-6


def test_max_of_takes_the_longest_delay_and_forgets_everywhere() -> None:
    exponential = ExponentialLimiter[str](1.0, 60.0)
    limiter = MaxOfLimiter[str](exponential, BucketLimiter(rate=0.1, burst=1))
    assert [limiter.delay("a", 0.0) for _ in range(3)] == [1.0, 10.0, 20.0]
    assert limiter.failures("a") == 3
    limiter.forget("a")
    assert exponential.failures("a") == 0
    assert limiter.failures("a") == 0


def test_default_limiter_is_the_one_of_every_kubernetes_controller() -> None:
    limiter = default_limiter()
    assert limiter.delay("a", 0.0) == 0.005
    for n in range(99):
        assert limiter.delay(n, 0.0) == 0.005
    assert limiter.delay("late", 0.0) == pytest.approx(0.1)
    delays = [limiter.delay("a", 0.0) for _ in range(30)]
    assert delays[-1] == 1000.0


@pytest.mark.parametrize(("base", "cap"), [(0, 1), (-1, 1), (2, 1)])
def test_impossible_exponential_limiters_are_refused(base: float, cap: float) -> None:
    with pytest.raises(ValueError):
        ExponentialLimiter[str](base, cap)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_impossible_bucket_limiters_are_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError):
        BucketLimiter[str](rate, burst)


def test_a_maximum_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError):
        MaxOfLimiter[str]()
