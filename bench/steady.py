"""What a large fleet costs in which nothing happens, and in which kubelets tell that they live.

``python -m bench.steady`` serves 10,000 machines with their Nodes, 100,000 pods and 10,000 volumes
by the sandbox's API server, lets ``mcm run`` work in a process of its own until nothing is to be
done any more, and looks at it from without: CPU time and wake-ups of the process by the operating
system, writes by the server, reconciles by its own metrics. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.large_fleet.copies import Size
from bench.large_fleet.managers import ManagerProcess, manager
from bench.large_fleet.serving import Served, serving

SHORT: Final = Size(machines=1000, pods=10_000)
_READY_WITHIN: Final = 120.0
_AT_REST_WITHIN: Final = 60.0
_BEFORE_A_LOOK: Final = 2.0
_RECONCILES: Final = re.compile(r"^mcm_controller_reconcile_total\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Spread:
    """The lowest, the middle and the highest of several slices of one look."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(*(round(v, 3) for v in (min(values), median(values), max(values))))


@dataclass(frozen=True, slots=True)
class Look:
    """One look: ``cpu_percent`` of one core. ``events`` are the Nodes' reports in that time."""

    seconds: float
    cpu_percent: Spread
    wake_ups_per_second: Spread
    events: int
    writes: int
    reconciles: int


@dataclass(frozen=True, slots=True)
class Scrape:
    """CPU seconds of the manager for one scrape of its metrics: all lines new, and none."""

    bytes: int
    first_cpu_seconds: float
    next_cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Steady:
    """Memory in MiB: resident after all looks, and the most there ever was. ``stalls``: what the
    log says of the event loop standing still."""

    objects: int
    resident_mib: float
    peak_mib: float
    quiet: Look
    heartbeats: Look
    scrape: Scrape
    stalls: Sequence[str]


async def measure(size: Size, *, seconds: float, slices: int, period: float) -> Steady:
    """Look for ``seconds``, in so many slices, at a quiet fleet, and for as long at one of which
    each Node reports once in ``period`` seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with serving(size, folder) as served, manager(served.kubeconfig, folder) as process:
            await process.ready(within=_READY_WITHIN)
            await process.at_rest(within=_AT_REST_WITHIN)
            scrape = await _scraped(process)
            quiet = await _look(served, process, seconds=seconds, slices=slices)
            await served.ask("heartbeats", every=period)
            heartbeats = await _look(served, process, seconds=seconds, slices=slices)
            used = process.usage()
            return Steady(
                objects=served.objects,
                resident_mib=round(used.resident, 1),
                peak_mib=round(used.peak, 1),
                quiet=quiet,
                heartbeats=heartbeats,
                scrape=scrape,
                stalls=process.stalls(),
            )


async def _look(served: Served, process: ManagerProcess, *, seconds: float, slices: int) -> Look:
    writes, sent = await served.writes(), await served.sent()
    reconciles = await _reconciles(process)
    await asyncio.sleep(_BEFORE_A_LOOK)
    cpu: list[float] = []
    wake_ups: list[float] = []
    for _ in range(slices):
        before = process.usage()
        await asyncio.sleep(seconds / slices)
        after = process.usage()
        cpu.append(100 * (after.cpu - before.cpu) / (after.at - before.at))
        wake_ups.append((after.wake_ups - before.wake_ups) / (after.at - before.at))
    return Look(
        seconds=seconds,
        cpu_percent=Spread.of(cpu),
        wake_ups_per_second=Spread.of(wake_ups),
        events=await served.sent() - sent,
        writes=await served.writes() - writes,
        reconciles=await _reconciles(process) - reconciles,
    )


async def _reconciles(process: ManagerProcess) -> int:
    return sum(int(float(n)) for n in _RECONCILES.findall(await process.scrape()))


async def _scraped(process: ManagerProcess) -> Scrape:
    before = process.usage().cpu
    text = await process.scrape()
    between = process.usage().cpu
    await process.scrape()
    return Scrape(
        bytes=len(text),
        first_cpu_seconds=round(between - before, 3),
        next_cpu_seconds=round(process.usage().cpu - between, 3),
    )


def show(found: Steady, console: Console) -> None:
    """Print the costs for people."""
    console.print(
        f"{found.objects:,} objects served; the manager has {found.resident_mib:,.0f} MiB, "
        f"{found.peak_mib:,.0f} at most"
    )
    table = Table("a fleet at rest")
    for header in ("CPU %", "(least, most)", "wake-ups / s", "events", "writes", "reconciles"):
        table.add_column(header, justify="right")
    for name, look in (("nothing changes", found.quiet), ("all Nodes report", found.heartbeats)):
        cpu = look.cpu_percent
        table.add_row(
            name,
            f"{cpu.median:.2f}",
            f"{cpu.least:.2f}, {cpu.most:.2f}",
            f"{look.wake_ups_per_second.median:.0f}",
            *(f"{number:,}" for number in (look.events, look.writes, look.reconciles)),
        )
    console.print(table)
    scrape = found.scrape
    console.print(
        f"a scrape of {scrape.bytes:,} bytes: {scrape.first_cpu_seconds:.2f} CPU s the first time, "
        f"{scrape.next_cpu_seconds:.2f} the next"
    )
    for stall in found.stalls:
        console.print(stall, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=0, help="10,000; short: 1,000")
    parser.add_argument("--pods", type=int, default=0, help="100,000; short: 10,000")
    parser.add_argument("--seconds", type=float, default=0.0, help="of each look; 60; short: 8")
    parser.add_argument("--slices", type=int, default=4, help="of each look")
    parser.add_argument(
        "--period", type=float, default=60.0, help="seconds between a Node's reports"
    )
    parser.add_argument("--short", action="store_true", help="fewer objects, for less time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    usual = SHORT if given.short else Size()
    size = Size.of(given.machines or usual.machines, given.pods or usual.pods)
    looks = {
        "seconds": given.seconds or (8.0 if given.short else 60.0),
        "slices": given.slices,
        "period": given.period,
    }
    found = asyncio.run(measure(size, **looks))
    if given.json:
        parameters = {**asdict(size), **looks}
        print(json.dumps({"bench": "steady", "parameters": parameters, "results": asdict(found)}))
    else:
        show(found, Console(width=120))


if __name__ == "__main__":
    main()
