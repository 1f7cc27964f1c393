"""A leader whose event loop stands still for longer than its lease, with writes at every stage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from mcm.client.connection import ConnectionSpec, StaticToken, TLSSpec
from mcm.client.errors import KubeError
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock
from mcm.leaderelection import LeadershipLost
from mcm.sandbox.loopback import LoopbackTransport
from tests.faults.candidate import Candidate
from tests.faults.test_two_candidates import create_counter
from tests.faults.writelog import WriteLog
from tests.integration.background import BackgroundServer

CLOCK = SystemClock()
BLOCKED = 3.2
"""Seconds, at least: the other candidate waits for two without a change, and up to 0.44 between two
looks. It goes on until the other has written, which on a busy machine takes longer."""
PATIENCE = 60.0
STAGES = 40


@pytest.fixture
def background(tmp_path: Path) -> Iterator[BackgroundServer]:
    """A server with a loop of its own, which goes on while ours stands still."""
    with BackgroundServer(tmp_path) as server:
        yield server


@asynccontextmanager
async def rival(background: BackgroundServer) -> AsyncIterator[None]:
    """On the server's loop, somebody else contends, and writes while leading."""

    async def contend() -> None:
        candidate = Candidate("rival", LoopbackTransport(background.server), clock=CLOCK)
        with suppress(asyncio.CancelledError):
            await candidate.elector.run(candidate.write_for_ever)

    async def start() -> asyncio.Task[None]:
        return asyncio.create_task(contend())

    async def stop() -> None:
        task.cancel()
        await asyncio.wait({task})

    task = background.do(start())
    try:
        yield
    finally:
        background.do(stop())


@pytest.fixture
async def transport(background: BackgroundServer) -> AsyncIterator[HTTPTransport]:
    front = background.front
    spec = ConnectionSpec(
        front.url, tls=TLSSpec(ca_data=front.ca), credentials=StaticToken(front.token)
    )
    made = HTTPTransport(spec, clock=CLOCK)
    yield made
    await made.aclose()


@pytest.mark.parametrize("connections", ["open", "to be opened"])
async def test_nothing_is_written_after_waking_until_the_lease_is_held_again(
    background: BackgroundServer, transport: HTTPTransport, connections: str
) -> None:
    log = WriteLog(background.server)
    background.do(create_counter(background.server))
    blocked = False

    async def lead_and_block(first: Candidate) -> None:
        nonlocal blocked
        if connections == "open":
            await asyncio.gather(*(first.write() for _ in range(STAGES)))
        async with rival(background), asyncio.TaskGroup() as group:
            for stage in range(STAGES):
                group.create_task(write_from(stage, first))
            for _ in range(STAGES // 2):
                await CLOCK.sleep(0)
            blocked = True
            block_until(lambda: log.writers()[-1:] == ["rival"])
            assert log.holder == "rival"
            await CLOCK.sleep(1.0)

    while not blocked:  # on a busy machine the lease may be lost before it comes to that
        first = Candidate("first", transport, clock=CLOCK)
        with pytest.raises(LeadershipLost):
            await first.elector.run(partial(lead_and_block, first))
    assert log.trespasses() == []
    while log.writers()[-1] != "second":  # the same
        second = Candidate("second", transport, clock=CLOCK)
        with suppress(LeadershipLost):
            await second.elector.run(second.write)
    assert log.trespasses() == []
    assert log.writers()[-2:] == ["rival", "second"]


def block_until(condition: Callable[[], bool]) -> None:
    """Let this thread, and with it the loop, stand still."""
    started = CLOCK.monotonic()
    while (passed := CLOCK.monotonic() - started) < BLOCKED or not condition():
        assert passed < PATIENCE
        time.sleep(BLOCKED / 16)  # noqa: TID251 - this is what the test is about


async def write_from(stage: int, candidate: Candidate) -> None:
    """Write on and on, ``stage`` turns of the loop later than the first: when all of them are
    stopped in one moment, every stage of a request is among where they are."""
    for _ in range(stage):
        await CLOCK.sleep(0)
    while True:
        with suppress(KubeError):
            await candidate.write()
        await CLOCK.sleep(0)
