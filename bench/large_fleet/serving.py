"""The process that serves a large fleet, from the side of who measures."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, final

import orjson

from bench.large_fleet.copies import Size
from bench.large_fleet.server import KUBECONFIG

_STARTED_WITHIN: Final = 180.0
_ANSWERED_WITHIN: Final = 60.0


@final
class Served:
    """A fleet that is served. ``objects`` is how many of all kinds."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self.kubeconfig = folder / KUBECONFIG
        self.objects = 0

    async def started(self) -> None:
        """Wait until it serves. Raises RuntimeError if it does not come to that."""
        async with asyncio.timeout(_STARTED_WITHIN):
            self.objects = (await self._answer())["objects"]

    async def ask(self, command: str, **details: object) -> dict[str, Any]:
        """Have the server do one of its commands; return what it says."""
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps({"do": command, **details}) + b"\n")
        async with asyncio.timeout(_ANSWERED_WITHIN):
            return await self._answer()

    async def writes(self) -> int:
        """Return how many writes were answered, but for those to leases."""
        counts = (await self.ask("requests"))["requests"]
        verbs = ("create", "update", "patch", "delete", "deletecollection")
        return sum(
            number
            for kind, number in counts.items()
            for agent, verb, resource in (kind.split(" "),)
            if agent.startswith("mcm") and verb in verbs and not resource.startswith("leases")
        )

    async def sent(self) -> int:
        """Return how often a Node has reported so far."""
        sent: int = (await self.ask("requests"))["heartbeats"]
        return sent

    async def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that serves the fleet ended")
        found: dict[str, Any] = orjson.loads(line)
        return found


@asynccontextmanager
async def serving(size: Size, folder: Path) -> AsyncIterator[Served]:
    """Serve a fleet of ``size`` while the context lasts; its files lie in ``folder``."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.large_fleet.server", str(folder)),
        *(f"{name}={number}" for name, number in asdict(size).items()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    served = Served(process, folder)
    try:
        await served.started()
        yield served
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
