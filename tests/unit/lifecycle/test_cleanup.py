"""What is closed after a life is closed whole."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from mcm.clock import LoopClock
from mcm.lifecycle import uninterrupted
from mcm.simulation.virtualtime import run_virtual

CLOCK = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))


def test_a_cancellation_waits_until_all_is_closed() -> None:
    closed: list[float] = []

    async def close() -> None:
        for _ in range(3):
            await CLOCK.sleep(1)
            closed.append(CLOCK.monotonic())

    async def scenario() -> None:
        closing = asyncio.create_task(uninterrupted(close))
        for _ in range(2):
            await CLOCK.sleep(0.4)
            closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert closed == [1.0, 2.0, 3.0]

    run_virtual(scenario)


def test_what_goes_wrong_is_raised() -> None:
    async def close() -> None:
        raise OSError("broken")

    async def scenario() -> None:
        with pytest.raises(OSError, match="broken"):
            await uninterrupted(close)

    run_virtual(scenario)
