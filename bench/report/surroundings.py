"""Under which conditions a number was measured: without them it says nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from mcm import __version__

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("aiohttp", "msgspec", "orjson", "uvloop")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``machine`` tells runs of one machine from those of others; it names nobody.

    ``changed``: the tree differed from ``commit``. ``api_server`` says which real one was at hand,
    or that there was none; what a bench used, its own parameters say."""

    date: str
    commit: str
    changed: bool
    mcm: str
    cpu: str
    cores: int
    memory_mib: int
    system: str
    python: str
    packages: Mapping[str, str]
    api_server: str

    @property
    def machine(self) -> str:
        return f"{self.cpu}, {self.cores} cores, {self.memory_mib / 1024:.1f} GiB"


def observed(api_server: str) -> Surroundings:
    return Surroundings(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=_git("rev-parse", "HEAD") or "unknown",
        changed=bool(_git("status", "--porcelain", "--untracked-files=no")),
        mcm=__version__,
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 0,
        memory_mib=_memory_mib(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages={name: found for name in PACKAGES if (found := _version(name))},
        api_server=api_server,
    )


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _cpu() -> str:
    return _line_of("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()


def _memory_mib() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (AttributeError, ValueError, OSError):
        return 0


def _line_of(file: str, key: str) -> str:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
