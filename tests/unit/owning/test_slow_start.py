from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.clock import LoopClock
from mcm.controllers.owning.slow_start import batches, slow_start
from tests.unit.machineset.cluster import EPOCH, play


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(0, []), (1, [1]), (2, [1, 1]), (7, [1, 2, 4]), (100, [1, 2, 4, 8, 16, 32, 37])],
)
def test_batches_double(count: int, sizes: list[int]) -> None:
    assert [len(b) for b in batches(count)] == sizes


@given(st.integers(0, 2000))
def test_batches_cover_everything_once(count: int) -> None:
    assert [n for batch in batches(count) for n in batch] == list(range(count))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 60), st.sets(st.integers(0, 59)))
def test_after_a_failure_its_batch_is_the_last(count: int, failing: set[int]) -> None:
    tried: list[int] = []
    clock = LoopClock(EPOCH)

    async def act(number: int) -> bool:
        tried.append(number)
        await clock.sleep(0)
        return number not in failing

    succeeded = play(lambda: slow_start(count, act))
    assert succeeded == len([n for n in tried if n not in failing])
    ends = [batch.stop for batch in batches(count)]
    broken = next((e for e in ends if any(n in failing for n in range(e))), count)
    assert sorted(tried) == list(range(broken))


def test_a_batch_runs_together() -> None:
    running, most = 0, 0
    clock = LoopClock(EPOCH)

    async def act(_: int) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await clock.sleep(1)
        running -= 1
        return True

    play(lambda: slow_start(15, act))
    assert most == 8


def test_an_unexpected_error_is_not_swallowed() -> None:
    async def act(_: int) -> bool:
        raise RuntimeError("a bug")

    with pytest.raises(ExceptionGroup) as caught:
        play(lambda: slow_start(3, act))
    assert caught.group_contains(RuntimeError, match="a bug")
