"""Waiting for a provider's call: told once that it is slow, whatever the clock shows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.clock import LoopClock
from mcm.controllers.provider.bounded import SLOW_AFTER, BoundedCalls
from mcm.fence import Unfenced
from mcm.simulation.harness import EPOCH
from mcm.simulation.virtualtime import run_virtual


@pytest.mark.timeout(60)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.floats(0.0, 1e7, allow_nan=False), st.floats(SLOW_AFTER, 30.0))
def test_a_slow_call_is_told_once_whenever_it_begins(begins: float, takes: float) -> None:
    async def main() -> None:
        clock = LoopClock(EPOCH)
        told: list[float] = []

        async def call() -> str:
            await clock.sleep(takes + 1)
            return "done"

        async def tell() -> None:
            told.append(clock.monotonic())

        await clock.sleep(begins)
        calls = BoundedCalls(clock=clock, fence=Unfenced())
        task = await calls.run(call, verb="create", subject="m", limit=60.0, slow=tell)
        assert task.result() == "done"
        assert len(told) == 1

    run_virtual(main)
