"""A stop, or a cancellation, at any turn of the event loop: there is no moment too early or bad."""

from __future__ import annotations

import asyncio

import pytest

from mcm.lifecycle import GRACE_PERIOD
from mcm.lifecycle.machine import HURRIED
from mcm.simulation.virtualtime import run_virtual
from tests.unit.manager.process import (
    CLOCK,
    ManagedProcess,
    fill,
    holders,
    new_server,
    steps,
    until,
)

TURNS = range(0, 240, 10)
"""From the first check until calls of the cloud are under way."""


@pytest.mark.parametrize("turns", TURNS)
def test_a_stop_on_the_way_up(turns: int) -> None:
    async def scenario() -> None:
        server = new_server()
        await fill(server)
        process = ManagedProcess(server)
        await steps(turns)
        process.stop.set()
        assert await process.ended(GRACE_PERIOD) is None
        process.check_nothing_is_left()
        assert holders(server) == ["", ""]

    run_virtual(scenario)


@pytest.mark.parametrize("turns", TURNS)
def test_a_cancellation_on_the_way_up(turns: int) -> None:
    async def scenario() -> None:
        server = new_server()
        await fill(server)
        process = ManagedProcess(server)
        await steps(turns)
        process.running.cancel()
        assert isinstance(await process.ended(HURRIED), asyncio.CancelledError)
        process.check_nothing_is_left()
        assert holders(server) == ["", ""]

    run_virtual(scenario)


@pytest.mark.parametrize("turns", range(0, 60, 5))
def test_a_cancellation_on_the_way_down(turns: int) -> None:
    async def scenario() -> None:
        server = new_server()
        await fill(server)
        process = ManagedProcess(server)
        await until(lambda: process.driver.under_way == 3)
        process.stop.set()
        await CLOCK.sleep(0.49 * GRACE_PERIOD)
        await until(lambda: process.driver.under_way == 0, within=1.0)
        await steps(turns)
        process.running.cancel()
        error = await process.ended(HURRIED)
        assert error is None or isinstance(error, asyncio.CancelledError)
        process.check_nothing_is_left()
        assert holders(server) == ["", ""]

    run_virtual(scenario)


def test_calls_of_the_cloud_are_under_way_at_the_last_of_these_turns() -> None:
    """Else the others would prove little."""

    async def scenario() -> None:
        server = new_server()
        await fill(server)
        process = ManagedProcess(server)
        await steps(TURNS[-1])
        assert process.leads and process.acts > 0
        process.stop.set()
        await process.ended(GRACE_PERIOD)

    run_virtual(scenario)
