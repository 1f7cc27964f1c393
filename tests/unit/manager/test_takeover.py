"""One process after another: how soon the next one works, and that never two do."""

from __future__ import annotations

import asyncio

import pytest

from mcm.api.timestamps import parse_rfc3339
from mcm.manager import LEASE_NAMES
from mcm.sandbox.apiserver.server import ApiServer
from mcm.simulation.virtualtime import run_virtual
from tests.unit.manager.process import (
    CLOCK,
    ELECTION,
    EPOCH,
    ManagedProcess,
    fill,
    holders,
    leases,
    new_server,
    until,
)

DURATION = ELECTION.lease_duration.total_seconds()
RETRY = ELECTION.retry_period.total_seconds()
REQUESTS = 0.1
"""Seconds for what the takeover itself costs: it looks, bids, and starts to work."""


async def two_processes(server: ApiServer, seed: int) -> tuple[ManagedProcess, ManagedProcess]:
    """Return one that leads, with calls of the cloud under way, and one that waits."""
    await fill(server)
    first = ManagedProcess(server, "one", seed=seed)
    await until(lambda: first.driver.under_way == 3)
    second = ManagedProcess(server, "two", seed=seed + 1000)
    await CLOCK.sleep(30 + seed / 3)
    assert holders(server) == ["one", "one"] and not second.leads
    return first, second


def last_renewal(server: ApiServer) -> float:
    """Return when a lease was last renewed, in seconds of the clock."""
    times = (parse_rfc3339(str(spec["renewTime"])) for spec in leases(server).values())
    return (max(times) - EPOCH).total_seconds()


@pytest.mark.parametrize("seed", range(8))
def test_a_killed_leader_is_followed_within_one_lease_duration_and_one_retry_period(
    seed: int,
) -> None:
    async def scenario() -> None:
        server = new_server()
        first, second = await two_processes(server, seed)
        await first.kill()
        renewed = last_renewal(server)
        await until(lambda: second.acts > 0)
        assert DURATION <= CLOCK.monotonic() - renewed <= DURATION + RETRY + REQUESTS
        await until(lambda: second.driver.under_way == 3)
        second.stop.set()
        assert await second.ended(20.0) is None
        assert first.trespasses == second.trespasses == []

    run_virtual(scenario)


def test_a_stopped_leader_is_followed_within_a_retry_period_of_its_end() -> None:
    async def scenario() -> None:
        server = new_server()
        first, second = await two_processes(server, 1)
        first.stop.set()
        assert await first.ended(20.0) is None
        assert await until(lambda: second.leads) <= RETRY + REQUESTS
        second.stop.set()
        assert await second.ended(20.0) is None
        assert first.trespasses == second.trespasses == []
        assert sorted(first.released) == sorted(LEASE_NAMES)

    run_virtual(scenario)


@pytest.mark.parametrize("apart", [0.0, 0.5, 2.0, 4.0])
def test_leases_lost_one_after_the_other_while_the_server_is_away_end_the_work_all_the_same(
    apart: float,
) -> None:
    """The second loss must not cut short what the first one set in motion."""

    async def scenario() -> None:
        server = new_server()
        before = asyncio.all_tasks()
        first, second = await two_processes(server, 1)
        first.faults.refuse(path=f"/leases/{LEASE_NAMES[1]}$")
        await CLOCK.sleep(apart)
        first.faults.refuse()
        first.faults.cut_watches()
        error = await first.ended(30.0)
        assert error is not None and "not renewed in time" in str(error)
        assert first.driver.cancelled == 3 and first.driver.under_way == 0
        assert not first.driver.serving, "a service that nobody ended"
        await until(lambda: second.leads, within=DURATION + RETRY)
        second.stop.set()
        assert await second.ended(20.0) is None
        assert asyncio.all_tasks() == before
        assert first.trespasses == second.trespasses == []

    run_virtual(scenario)
