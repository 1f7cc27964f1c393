from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.client.throttle import Throttle, TokenBucket
from mcm.clock import LoopClock
from mcm.simulation.virtualtime import run_virtual

CLOCK = LoopClock(datetime(2024, 1, 1, tzinfo=UTC))


def test_a_burst_is_free_and_what_follows_comes_at_the_rate() -> None:
    bucket = TokenBucket(qps=2, burst=3, now=0.0)
    assert [bucket.take(0.0) for _ in range(5)] == [0, 0, 0, 0.5, 1.0]


def test_an_idle_bucket_saves_up_no_more_than_the_burst() -> None:
    bucket = TokenBucket(qps=10, burst=2, now=0.0)
    assert [bucket.take(1000.0) for _ in range(3)] == [0, 0, 0.1]


def test_a_rate_must_be_positive() -> None:
    with pytest.raises(ValueError):
        TokenBucket(qps=0, burst=1, now=0.0)


@given(
    qps=st.floats(min_value=0.1, max_value=100),
    burst=st.integers(1, 50),
    gaps=st.lists(st.floats(min_value=0, max_value=5), max_size=60),
)
def test_no_window_ever_admits_more_than_burst_and_rate(
    qps: float, burst: int, gaps: list[float]
) -> None:
    bucket = TokenBucket(qps=qps, burst=burst, now=0.0)
    now = 0.0
    starts = []
    for gap in gaps:
        now += gap
        starts.append(now + bucket.take(now))
    for i, first in enumerate(starts):
        for j in range(i, len(starts)):
            assert j - i + 1 <= burst + (starts[j] - first) * qps + 1e-6


def test_no_more_are_in_flight_than_allowed() -> None:
    running = peak = 0

    async def main() -> None:
        throttle = Throttle(clock=CLOCK, max_in_flight=3)

        async def one() -> None:
            nonlocal running, peak
            async with throttle.turn():
                running += 1
                peak = max(peak, running)
                await CLOCK.sleep(1)
                running -= 1

        await asyncio.gather(*(one() for _ in range(10)))

    run_virtual(main)
    assert peak == 3


def test_requests_are_spread_at_the_rate_in_order() -> None:
    async def main() -> list[float]:
        throttle = Throttle(clock=CLOCK, max_in_flight=0, qps=1, burst=1)
        started: list[float] = []

        async def one() -> None:
            async with throttle.turn():
                started.append(CLOCK.monotonic())

        await asyncio.gather(*(one() for _ in range(4)))
        return started

    assert run_virtual(main) == [0, 1, 2, 3]


def test_who_gives_up_waiting_costs_the_others_nothing() -> None:
    async def main() -> float:
        throttle = Throttle(clock=CLOCK, max_in_flight=0, qps=1, burst=1)
        async with throttle.turn():
            pass
        waiting = asyncio.ensure_future(throttle.turn().__aenter__())
        await CLOCK.sleep(0.5)
        waiting.cancel()
        await asyncio.wait([waiting])
        async with throttle.turn():
            return CLOCK.monotonic()

    assert run_virtual(main) == pytest.approx(1.0)
