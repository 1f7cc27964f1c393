"""``python -m bench.report``: run the benches, keep what they say, write a page with pictures.

Each run gets a folder of its own below ``bench/results/``, named for its time; the newest is
``bench/results/latest``. The one that is committed, ``bench/results/baseline``, is written with
``--baseline`` alone. A bench that fails is named, and harms no other.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from bench.report import servers
from bench.report.page import named, write
from bench.report.plan import BENCHES
from bench.report.record import RAW, Record, Unreadable, keep, read
from bench.report.running import run_all
from bench.report.surroundings import ROOT, observed

RESULTS: Final = ROOT / "bench" / "results"
BASELINE: Final = "baseline"
LATEST: Final = "latest"


def say(line: str) -> None:
    print(line, flush=True)


def earlier_runs(results: Path, but: Path, now: Sequence[Record]) -> list[list[Record]]:
    """Return what was kept of other runs on the machine that it is about ``now``."""
    machine = now[0].surroundings.machine
    found = []
    for folder in sorted(results.glob("*/" + RAW)):
        if folder.parent.is_symlink() or folder.parent == but:
            continue
        try:
            records = read(folder.parent)
        except Unreadable as e:
            say(f"left out: {e}")
            continue
        if records and records[0].surroundings.machine == machine:
            found.append(records)
    return found


def measure(names: Sequence[str], folder: Path, *, short: bool) -> None:
    benches = named(names)
    for bench in benches:
        if not bench.exists:
            say(f"{bench.name}: there is no {bench.module}, so it is left out")
    environment = observed(servers.at_hand(os.environ, say))
    say(f"{environment.machine}; {environment.python}; real API server: {environment.api_server}")
    run_all(
        [bench for bench in benches if bench.exists],
        environment,
        folder,
        short=short,
        keep=partial(keep, folder=folder),
        say=say,
    )


def _point_latest(folder: Path) -> None:
    link = folder.parent / LATEST
    with suppress(FileNotFoundError):
        link.unlink()
    with suppress(OSError):  # where a file system has no links, the page's path is still told
        link.symlink_to(folder.name)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.report", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="BENCH",
        choices=[bench.name for bench in BENCHES],
        help="may be repeated",
    )
    parser.add_argument("--full", action="store_true", help="at full size, which takes much longer")
    parser.add_argument(
        "--baseline",
        action="store_true",
        help="write the results that are committed; with --only, these of them",
    )
    parser.add_argument(
        "--redraw", type=Path, metavar="FOLDER", help="make the page of a run that was kept anew"
    )
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="FOLDER", help="where runs are kept"
    )
    return parser.parse_args()


def _folder(given: argparse.Namespace) -> Path:
    """Measure, and return where the results are."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    folder: Path = given.results.resolve() / (BASELINE if given.baseline else now)
    if given.baseline and not given.only:
        shutil.rmtree(folder, ignore_errors=True)
    measure(given.only, folder, short=not given.full)
    if not given.baseline:
        _point_latest(folder)
    return folder


def main() -> int:
    given = _arguments()
    folder = given.redraw.resolve() if given.redraw else _folder(given)
    try:
        records = read(folder)
    except Unreadable as e:
        say(str(e))
        return 2
    if not records:
        say(f"{folder / RAW} holds no results")
        return 2
    page = write(records, earlier_runs(folder.parent, folder, records), folder)
    say(f"results: {page}")
    failed = [record.bench for record in records if record.failure]
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
