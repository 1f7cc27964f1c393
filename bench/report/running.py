"""Runs a bench in a process of its own, which may fail without harm to the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.report.plan import Bench
from bench.report.record import RAW, Record, Unreadable, parsed
from bench.report.surroundings import ROOT, Surroundings

_LAST_WORDS: Final = 15.0
"""Seconds in which a bench that took too long may end the servers that it has started."""


def run(bench: Bench, surroundings: Surroundings, folder: Path, *, short: bool) -> Record:
    """Run it and return what it said. Its log stays beside its numbers."""
    command = ("python", "-m", bench.module, "--json", *(("--short",) if short else ()))
    raw = folder / RAW
    raw.mkdir(parents=True, exist_ok=True)
    patience = bench.patience if short else None
    began = time.monotonic()
    with (raw / f"{bench.name}.log").open("wb+") as log:
        output, failure = _finished([sys.executable, *command[1:]], log.fileno(), patience)
        seconds = round(time.monotonic() - began, 1)
        log.seek(0)
        failure = failure and f"{failure}: {_last_line(log.read())}"
    try:
        parameters, results = parsed(output)
    except Unreadable as e:
        return Record(bench.name, command, seconds, surroundings, failure=failure or str(e))
    return Record(bench.name, command, seconds, surroundings, parameters, results, failure)


def run_all(
    benches: Sequence[Bench],
    surroundings: Surroundings,
    folder: Path,
    *,
    short: bool,
    keep: Callable[[Record], object],
    say: Callable[[str], None],
) -> list[Record]:
    """Run one after the other, saying a line each, and keep each at once."""
    records = []
    for number, bench in enumerate(benches, 1):
        about = f", about {bench.seconds} s" if short else ""
        say(f"[{number}/{len(benches)}] {bench.name}: {bench.what}{about}")
        record = run(bench, surroundings, folder, short=short)
        keep(record)
        records.append(record)
        end = f"FAILED: {record.failure}" if record.failure else "done"
        say(f"      {end} after {record.seconds:.0f} s")
    return records


def _finished(command: Sequence[str], log: int, patience: float | None) -> tuple[bytes, str]:
    """Return what it printed, and how it failed if it did."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        return _ended(process), f"took more than {patience:.0f} s"
    except BaseException:
        _ended(process)
        raise
    return output, f"exit code {process.returncode}" if process.returncode else ""


def _ended(process: subprocess.Popen[bytes]) -> bytes:
    """End a bench and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=_LAST_WORDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return output


def _last_line(log: bytes) -> str:
    lines = log.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "no message"
