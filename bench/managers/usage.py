"""What processes use, read from ``/proc`` (proc(5)); nothing where there is none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_RESETS_PEAK: Final = "5"
_PROC: Final = Path("/proc")


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds (user and system) since the start, and resident bytes: now, and at the most
    since :func:`forget_peak`. All are sums over the processes."""

    cpu_seconds: float
    resident_bytes: int
    peak_bytes: int


def usage_of(pids: Iterable[int]) -> Usage:
    """Return what these use together; what has ended uses nothing."""
    cpu = resident = peak = 0
    for pid in pids:
        stat, memory = _stat_of(pid), _memory_of(pid)
        cpu += stat.cpu_ticks if stat is not None else 0
        resident += memory.get("VmRSS", 0)
        peak += memory.get("VmHWM", 0)
    return Usage(cpu / _TICKS, resident, peak)


def session(leader: int) -> Iterator[int]:
    """Yield the processes of a session: all that its leader has started, unless it left."""
    for folder in _PROC.glob("[0-9]*"):
        stat = _stat_of(int(folder.name))
        if stat is not None and stat.session == leader:
            yield stat.pid


def forget_peak(pid: int) -> None:
    """Let a process's peak begin anew with what is resident now."""
    with suppress(OSError):
        (_PROC / str(pid) / "clear_refs").write_text(_RESETS_PEAK)


@dataclass(frozen=True, slots=True)
class _Stat:
    pid: int
    session: int
    cpu_ticks: int


def _stat_of(pid: int) -> _Stat | None:
    """Read ``stat`` (proc(5)); None for one that has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before may hold anything
    session_id, times = (
        int(fields[3]),
        fields[11:15],
    )  # own, and those of children that were awaited
    return _Stat(pid, session_id, sum(map(int, times)))


def _memory_of(pid: int) -> dict[str, int]:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return {}
    found = (line.split() for line in lines if line.startswith(("VmRSS:", "VmHWM:")))
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in found}
