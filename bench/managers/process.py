"""A manager's process, or processes, and the CPU and memory that they use.

It gets a session of its own, so that whatever it starts is counted with it and ended with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

_STOP_WITHIN: Final = 30.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_RESETS_PEAK: Final = "5"
_PROC: Final = Path("/proc")


class ManagerEnded(Exception):
    """It ended by itself; the text holds the end of its log."""


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds (user and system) since the start, and resident bytes: now, and at the most
    since :meth:`ManagerProcess.forget_peak`. All are sums over its processes."""

    cpu_seconds: float
    resident_bytes: int
    peak_bytes: int


@final
class ManagerProcess:
    """One running manager. ``log`` gets its output."""

    def __init__(
        self, name: str, arguments: Sequence[str], *, env: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(arguments),
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise :class:`ManagerEnded` unless it runs."""
        code = self._process.poll()
        if code is not None:
            raise ManagerEnded(
                f"the manager {self.name} ended with {code}:\n{self.tail()}\n(log: {self.log})"
            )

    def usage(self) -> Usage:
        """Read what its processes use; zeros where there is no ``/proc``."""
        cpu = resident = peak = 0
        for stat in self._members():
            cpu += stat.cpu_ticks
            memory = _memory_of(stat.pid)
            resident += memory.get("VmRSS", 0)
            peak += memory.get("VmHWM", 0)
        return Usage(cpu / _TICKS, resident, peak)

    def forget_peak(self) -> None:
        """Let the peak begin anew with what is resident now."""
        for stat in self._members():
            with suppress(OSError):
                (_PROC / str(stat.pid) / "clear_refs").write_text(_RESETS_PEAK)

    def tail(self, lines: int = 12) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    async def stop(self) -> None:
        """End it, at first as an orderly stop does, and whatever else is left of its session."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, _STOP_WITHIN)
        self.kill()

    def kill(self) -> None:
        """End all of its session at once."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _members(self) -> Iterator[_Stat]:
        for folder in _PROC.glob("[0-9]*"):
            stat = _stat_of(folder)
            if stat is not None and stat.session == self._process.pid:
                yield stat


@dataclass(frozen=True, slots=True)
class _Stat:
    pid: int
    session: int
    cpu_ticks: int


def _stat_of(folder: Path) -> _Stat | None:
    """Read ``stat`` (proc(5)); None for a process that has just ended."""
    try:
        text = (folder / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before may hold anything
    session, times = int(fields[3]), fields[11:15]  # own, and those of children that were awaited
    return _Stat(int(folder.name), session, sum(map(int, times)))


def _memory_of(pid: int) -> dict[str, int]:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return {}
    found = (line.split() for line in lines if line.startswith(("VmRSS:", "VmHWM:")))
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in found}
