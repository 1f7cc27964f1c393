"""``mcm run`` in a process of its own, and what the operating system says of it."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import aiohttp

_LOOK_EVERY: Final = 0.2
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_STOOD_STILL: Final = "the event loop stood still"
_MIB: Final = 1024.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far. ``at`` and CPU in seconds, memory in MiB; ``wake_ups`` is how
    often one of its threads went to sleep, each of which is a wake-up."""

    at: float
    cpu: float
    resident: float
    peak: float
    wake_ups: int


@final
class ManagerProcess:
    """One replica. ``log`` is its log file."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, log: Path) -> None:
        self._process = process
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        self.started_at = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    def usage(self) -> Usage:
        """Return what it used. Linux only."""
        folder = Path(f"/proc/{self.pid}")
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        told = _told(folder / "status")
        switches = sum(
            _told(task / "status")["voluntary_ctxt_switches"]
            for task in (folder / "task").iterdir()
        )
        return Usage(
            at=time.monotonic(),
            cpu=ticks / _TICKS,
            resident=told["VmRSS"] / _MIB,
            peak=told["VmHWM"] / _MIB,
            wake_ups=switches,
        )

    async def ready(self, *, within: float) -> float:
        """Wait until it says that all its mirrors are synced; return the seconds since its start.

        Raises RuntimeError with the end of its log if that takes too long, or it ended.
        """
        async with aiohttp.ClientSession() as session:
            while time.monotonic() < self.started_at + within:
                if self._process.returncode is not None:
                    break
                try:
                    async with session.get(f"{self.url}/readyz") as answer:
                        if answer.status == 200:
                            return time.monotonic() - self.started_at
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(_LOOK_EVERY)
        raise RuntimeError(f"mcm run was not ready within {within:.0f} s:\n{self._last_lines()}")

    async def at_rest(self, *, within: float, share: float = 0.05, seconds: float = 3.0) -> None:
        """Wait until it uses less than that share of a core for some seconds.

        Raises RuntimeError if it does not come to that.
        """
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            before = self.usage()
            await asyncio.sleep(seconds)
            after = self.usage()
            if after.cpu - before.cpu < share * seconds:
                return
        raise RuntimeError(f"mcm run was still busy after {within:.0f} s:\n{self._last_lines()}")

    async def scrape(self) -> str:
        """Return its metrics, all of them."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/metrics") as answer:
            return await answer.text()

    def stalls(self) -> Sequence[str]:
        """Return what its log says of times in which the event loop stood still."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [line[line.index(_STOOD_STILL) :] for line in lines if _STOOD_STILL in line]

    async def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """End it in order, so that it gives up its leases."""
        self._process.terminate()
        await self._process.wait()

    def _last_lines(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])


@asynccontextmanager
async def manager(
    kubeconfig: Path, folder: Path, *, name: str = "mcm", flags: Sequence[str] = ()
) -> AsyncIterator[ManagerProcess]:
    """Run a replica against the clusters of ``kubeconfig``; its log is ``folder``/``name``.log."""
    port = _free_port()
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mcm", "run"),
            *(f"--control-kubeconfig={kubeconfig}", f"--target-kubeconfig={kubeconfig}"),
            *("--address=127.0.0.1", f"--port={port}"),
            *flags,
            stdout=output,
            stderr=output,
            env={**os.environ, "HOME": str(folder)},
        )
    try:
        yield ManagerProcess(process, port, log)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _told(status: Path) -> dict[str, int]:
    """Return the numbers of a status file, by name; sizes in KiB."""
    found = re.findall(r"^(\w+):\s+(\d+)", status.read_text(), re.MULTILINE)
    return {name: int(number) for name, number in found}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
