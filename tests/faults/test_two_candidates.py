"""Two processes contend for one lease; one is stopped, or its clock is wrong."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self, final

import msgspec
import orjson
import pytest

from mcm.client.transport import Request, Response
from mcm.clock import SystemClock
from mcm.sandbox.apiserver.front.http import Certificates, Front, serve_https
from mcm.sandbox.apiserver.server import ApiServer
from tests.faults.candidate import COUNTER, NAMESPACE, WRITE_PERIOD, Task
from tests.faults.writelog import WriteLog

ROOT = Path(__file__).parents[2]
CLOCK = SystemClock()


@final
class Arena:
    """A server, its log, and the candidates' processes by name."""

    def __init__(self, server: ApiServer, front: Front) -> None:
        self.log = WriteLog(server)
        self._front = front
        self._processes: dict[str, asyncio.subprocess.Process] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, certificates: Certificates) -> AsyncIterator[Self]:
        server = ApiServer(clock=CLOCK, random=random.Random(1))
        await create_counter(server)
        async with AsyncExitStack() as stack:
            front = await stack.enter_async_context(serve_https(server, certificates=certificates))
            arena = cls(server, front)
            stack.push_async_callback(arena._end_processes)
            yield arena

    async def start(self, name: str, *, skew: float = 0.0) -> None:
        front = self._front
        task = Task(name, front.url, front.ca.decode(), front.token, skew)
        self._processes[name] = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.faults.candidate",
            msgspec.json.encode(task).decode(),
            cwd=ROOT,
            # A stopped member would bring SIGHUP on our whole process group if that lost its shell.
            start_new_session=True,
        )

    def signal(self, name: str, signum: signal.Signals) -> None:
        self._processes[name].send_signal(signum)

    async def leader(self) -> str:
        """Return the name of whoever has written a few times."""
        await self.until(lambda: len(self.log.entries) > 3 and self.log.holder != "")
        return self.log.holder[0]

    async def until_written(self, name: str, times: int = 3) -> None:
        """Return after so many more writes in some life of ``name``."""
        wanted = self._writes_of(name) + times
        await self.until(lambda: self._writes_of(name) >= wanted)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(15):
            while not condition():
                await CLOCK.sleep(0.005)

    def _writes_of(self, name: str) -> int:
        return sum(entry.writer.startswith(name) for entry in self.log.entries)

    async def _end_processes(self) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()


async def create_counter(server: ApiServer) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": COUNTER}}
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    headers = {"content-type": "application/json"}
    answer = await server.handle(Request("POST", path, (), headers, orjson.dumps(body)))
    assert isinstance(answer, Response) and answer.status == 201


@pytest.fixture
async def arena(certificates: Certificates) -> AsyncIterator[Arena]:
    async with Arena.open(certificates) as opened:
        yield opened


async def test_a_leader_that_was_stopped_for_longer_than_its_lease_writes_no_more(
    arena: Arena,
) -> None:
    await arena.start("A")
    await arena.start("B")
    first = await arena.leader()
    second = "B" if first == "A" else "A"
    # Between two writes: what is on its way already, no fence can call back. Such a write would
    # have to be refused by the server, which is what preconditions are for.
    await arena.until_written(first, 2)
    await CLOCK.sleep(WRITE_PERIOD / 3)
    arena.signal(first, signal.SIGSTOP)
    await arena.until_written(second)
    arena.signal(first, signal.SIGCONT)
    await CLOCK.sleep(1.0)
    assert arena.log.holder == f"{second}1", "whoever comes back must not release another's lease"
    await arena.until_written(second)
    arena.signal(second, signal.SIGTERM)
    await arena.until_written(first)
    assert arena.log.trespasses() == []
    assert arena.log.writers() == [f"{first}1", f"{second}1", f"{first}2"]


async def test_wall_clocks_that_are_minutes_apart_change_nothing(arena: Arena) -> None:
    await arena.start("A", skew=60.0)
    await arena.start("B", skew=-60.0)
    first = await arena.leader()
    second = "B" if first == "A" else "A"
    await CLOCK.sleep(2.5)  # longer than a lease, as anybody counts
    assert arena.log.writers() == [f"{first}1"]
    arena.signal(first, signal.SIGKILL)
    await arena.until_written(second)
    assert arena.log.trespasses() == []
    assert arena.log.writers() == [f"{first}1", f"{second}1"]
