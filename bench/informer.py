"""What mirroring a cluster costs, and what it costs other Python clients of the same server.

``python -m bench.informer [--json]``. A replay server in its own process sends the same recorded
bytes to every contestant, each in a fresh process; compare numbers of one run only. Contestants
that are not installed are left out and named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

import msgspec
import orjson
from rich.console import Console
from rich.table import Table

from bench.contestants import CONTESTANTS
from bench.footprint import Relists, Synced
from bench.inprocess import Throughput, throughput
from bench.race import Times, Weight, run
from bench.recorded_objects import FIRST_VERSION, KINDS
from bench.replay import Script, replaying

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything. ``weighed`` objects are enough for a mean weight."""

    machines: int = 10_000
    nodes: int = 2_000
    rounds: int = 2
    weighed: int = 2_000
    mixed: int = 50_000
    relists: int = 10
    repeat: int = 3


@dataclass(frozen=True, slots=True)
class Row:
    """What one contestant did; ``failure`` says why a part is missing."""

    times: Times | None = None
    weight: Weight | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything, as ``--json`` prints it. ``machines`` and ``nodes`` are rows by contestant."""

    sizes: Sizes
    object_bytes: dict[str, int]
    versions: dict[str, str]
    missing: list[str]
    in_process: Throughput
    machines: dict[str, Row]
    nodes: dict[str, Row]
    mixed: Synced
    relists: Relists


class ChildFailed(Exception):
    """A measuring process ended with an error; its last line is the message."""


async def measure(sizes: Sizes, names: Sequence[str]) -> Report:
    present = [name for name in names if CONTESTANTS[name].installed]
    return Report(
        sizes=sizes,
        object_bytes={
            name: len(orjson.dumps(kind.make(0, version=FIRST_VERSION)))
            for name, kind in KINDS.items()
        },
        versions={name: CONTESTANTS[name].version for name in present},
        missing=[name for name in names if name not in present],
        in_process=await _best_in_process(sizes),
        machines=await _raced("machines", sizes.machines, sizes, present),
        nodes=await _raced("nodes", sizes.nodes, sizes, present),
        mixed=await _mixed(sizes),
        relists=await _relists(sizes),
    )


async def _best_in_process(sizes: Sizes) -> Throughput:
    runs = [await throughput(sizes.machines, sizes.rounds) for _ in range(sizes.repeat)]
    return max(runs, key=lambda r: r.events_per_cpu_second)


async def _raced(kind: str, count: int, sizes: Sizes, names: Iterable[str]) -> dict[str, Row]:
    """Race all contestants in turns, so that a busy minute of the machine meets all of them."""
    rows = {name: Row() for name in names}
    async with replaying(Script.of(kind, count, rounds=sizes.rounds)) as url:
        for _ in range(sizes.repeat):
            for name in rows:
                arguments = (name, kind, url, *_sizes(count, sizes.rounds))
                rows[name] = await _added(rows[name], "bench.race", *arguments)
    count = min(count, sizes.weighed)
    async with replaying(Script.of(kind, count, rounds=1)) as url:
        for name in rows:
            arguments = (name, kind, url, *_sizes(count, 1), "--weigh")
            rows[name] = await _added(rows[name], "bench.race", *arguments)
    return rows


def _sizes(count: int, rounds: int) -> tuple[str, ...]:
    return ("--count", str(count), "--rounds", str(rounds))


async def _added(row: Row, *command: str) -> Row:
    """Run one measurement and take it into the row."""
    try:
        if "--weigh" in command:
            return replace(row, weight=await _child(Weight, *command))
        found = await _child(Times, *command)
    except ChildFailed as failure:
        return replace(row, failure=str(failure))
    return replace(row, times=_best(row.times, found))


def _best(one: Times | None, other: Times) -> Times:
    """Take each cost where other work disturbed it least."""
    if one is None:
        return other
    return replace(
        one,
        list_cpu_seconds=min(one.list_cpu_seconds, other.list_cpu_seconds),
        list_wall_seconds=min(one.list_wall_seconds, other.list_wall_seconds),
        events_per_cpu_second=max(one.events_per_cpu_second, other.events_per_cpu_second),
    )


async def _mixed(sizes: Sizes) -> Synced:
    half = sizes.mixed // 2
    async with replaying(Script(machines=half, nodes=sizes.mixed - half)) as url:
        return await _child(Synced, "bench.footprint", "mixed", url)


async def _relists(sizes: Sizes) -> Relists:
    times = sizes.relists
    async with replaying(Script(machines=sizes.machines, relists=times)) as url:
        command = ("bench.footprint", "relists", url, "--relists", str(times))
        return await _child(Relists, *command)


async def _child(result: type[R], module: str, *arguments: str) -> R:
    """Run a module's measurement in a fresh process; raise ChildFailed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode:
        raise ChildFailed((err.decode().strip().splitlines() or ["no message"])[-1])
    return msgspec.json.decode(out, type=result)


def show(report: Report, console: Console) -> None:
    """Print the report for people."""
    console.print(_race_table("machines", report.sizes.machines, report.machines, report))
    console.print(_race_table("nodes", report.sizes.nodes, report.nodes, report))
    for name in report.missing:
        console.print(f"{name} is not installed: pip install {name} (or the extra 'bench')")
    console.print(_plain_table("mcm, the same without a socket", asdict(report.in_process)))
    console.print(_plain_table("mcm, Machines and Nodes at once", asdict(report.mixed)))
    console.print(_plain_table("mcm, lists that bring all anew", asdict(report.relists)))


def _race_table(kind: str, count: int, rows: Mapping[str, Row], report: Report) -> Table:
    events = count * report.sizes.rounds
    title = f"{count:,} {kind} of {report.object_bytes[kind]:,} bytes, {events:,} events"
    table = Table(title=title, title_justify="left")
    table.add_column("from socket to queue", no_wrap=True)
    for header in ("events/CPU s", "mcm is", "list CPU s", "list wall s", "bytes/object"):
        table.add_column(header, justify="right")
    ours = rows["mcm"].times if "mcm" in rows else None
    for name, row in rows.items():
        table.add_row(f"{name} {report.versions[name]}", *_cells(row, ours))
    for name, row in rows.items():
        if row.failure:
            table.add_row(name, f"failed: {row.failure}")
    return table


def _cells(row: Row, ours: Times | None) -> Sequence[str]:
    times, weight = row.times, row.weight
    factor = ours.events_per_cpu_second / times.events_per_cpu_second if ours and times else None
    return (
        f"{times.events_per_cpu_second:,}" if times else "-",
        f"{factor:.1f} x" if factor else "-",
        f"{times.list_cpu_seconds:.2f}" if times else "-",
        f"{times.list_wall_seconds:.2f}" if times else "-",
        f"{weight.bytes_per_object:,}" if weight else "-",
    )


def _plain_table(title: str, values: Mapping[str, object]) -> Table:
    table = Table("value", title=title, title_justify="left", show_header=False)
    table.add_column(justify="right")
    for name, value in values.items():
        table.add_row(name.replace("_", " "), _text(name, value))
    return table


def _text(name: str, value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(_text(name, v) for v in value)
    if isinstance(value, int) and name.endswith("rss_bytes"):
        return f"{value / 2**20:,.0f} MiB"
    return f"{value:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in asdict(Sizes()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", choices=CONTESTANTS, action="append", help="may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = vars(parser.parse_args())
    as_json, only = given.pop("json"), given.pop("only")
    result = run(measure(Sizes(**given), only or list(CONTESTANTS)))
    if as_json:
        print(json.dumps(asdict(result)))
    else:
        show(result, Console(width=110))


if __name__ == "__main__":
    main()
