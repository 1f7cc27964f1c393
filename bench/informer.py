"""What mirroring a cluster costs, and what it costs other Python clients of the same server.

``python -m bench.informer [--json] [--short]``. A replay server in its own process sends the same
recorded bytes to every contestant, each in a fresh process; compare numbers of one run only.
Contestants that are not installed are left out and named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

import msgspec
import orjson
from rich.console import Console
from rich.table import Table

from bench.entrants import NAMES, Course, Entrant, entered
from bench.footprint import Peaks, Relists, Synced
from bench.inprocess import Throughput, throughput
from bench.race import Times, Weight, run
from bench.recorded_objects import FIRST_VERSION, KINDS
from bench.replay import Script, replaying

R = TypeVar("R")

_FOOTPRINT = (sys.executable, "-m", "bench.footprint")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything. ``weighed`` objects are enough for a mean weight."""

    machines: int = 10_000
    nodes: int = 2_000
    rounds: int = 2
    weighed: int = 2_000
    mixed: int = 50_000
    relists: int = 10
    listed_pods: int = 100_000
    repeat: int = 3


SHORT = Sizes(
    machines=5_000,
    rounds=1,
    weighed=1_000,
    mixed=20_000,
    relists=3,
    listed_pods=10_000,
    repeat=2,
)


@dataclass(frozen=True, slots=True)
class Row:
    """What one contestant did; ``failure`` says why a part is missing."""

    times: Times | None = None
    weight: Weight | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything, as ``--json`` prints it. ``machines`` and ``nodes`` are rows by contestant.

    ``missing`` says why a contestant took no part, ``share_of_bare`` how much of the bare loop's
    events ours takes in.
    """

    object_bytes: dict[str, int]
    versions: dict[str, str]
    missing: dict[str, str]
    in_process: Throughput
    machines: dict[str, Row]
    nodes: dict[str, Row]
    share_of_bare: dict[str, float]
    mixed: Synced
    relists: Relists
    lists_of_pods: dict[str, Peaks]


class ChildFailed(Exception):
    """A measuring process ended with an error; its last line is the message."""


async def measure(sizes: Sizes, names: Sequence[str]) -> Report:
    present, missing = entered(names)
    machines = await _raced(Course("machines", sizes.machines, sizes.rounds), sizes, present)
    nodes = await _raced(Course("nodes", sizes.nodes, sizes.rounds), sizes, present)
    return Report(
        object_bytes={
            name: len(orjson.dumps(kind.make(0, version=FIRST_VERSION)))
            for name, kind in KINDS.items()
        },
        versions={name: entrant.version for name, entrant in present.items()},
        missing=dict(missing),
        in_process=await _best_in_process(sizes),
        machines=machines,
        nodes=nodes,
        share_of_bare={
            kind: share
            for kind, rows in (("machines", machines), ("nodes", nodes))
            if (share := _share(rows, "bare")) is not None
        },
        mixed=await _mixed(sizes),
        relists=await _relists(sizes),
        lists_of_pods={
            "streamed": await _peaks(Script(pods=sizes.listed_pods, relists=1)),
            "in pages": await _peaks(Script(pods=sizes.listed_pods, relists=1, pages=1)),
        },
    )


async def _best_in_process(sizes: Sizes) -> Throughput:
    runs = [await throughput(sizes.machines, sizes.rounds) for _ in range(sizes.repeat)]
    return max(runs, key=lambda r: r.events_per_cpu_second)


async def _raced(course: Course, sizes: Sizes, entrants: Mapping[str, Entrant]) -> dict[str, Row]:
    """Race all contestants in turns, so that a busy minute of the machine meets all of them."""
    rows = {name: Row() for name in entrants}
    async with replaying(Script.of(course.kind, course.count, rounds=course.rounds)) as url:
        for _ in range(sizes.repeat):
            for name, entrant in entrants.items():
                rows[name] = await _timed(rows[name], entrant.command(course, url))
    few = Course(course.kind, min(course.count, sizes.weighed), 1)
    async with replaying(Script.of(few.kind, few.count, rounds=1)) as url:
        for name, entrant in entrants.items():
            rows[name] = await _weighed(rows[name], entrant.command(few, url))
    return rows


async def _timed(row: Row, command: Sequence[str]) -> Row:
    """Run one race and take it into the row."""
    try:
        return replace(row, times=_best(row.times, await _child(Times, *command)))
    except ChildFailed as failure:
        return replace(row, failure=str(failure))


async def _weighed(row: Row, command: Sequence[str]) -> Row:
    try:
        return replace(row, weight=await _child(Weight, *command, "--weigh"))
    except ChildFailed as failure:
        return replace(row, failure=str(failure))


def _share(rows: Mapping[str, Row], of: str) -> float | None:
    """Return how many times the events of ``of`` ours takes in, if both took part."""
    ours, other = (rows[name].times if name in rows else None for name in ("mcm", of))
    if ours is None or other is None:
        return None
    return round(ours.events_per_cpu_second / other.events_per_cpu_second, 2)


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
        return await _child(Synced, *_FOOTPRINT, "mixed", url)


async def _relists(sizes: Sizes) -> Relists:
    times = sizes.relists
    async with replaying(Script(machines=sizes.machines, relists=times)) as url:
        arguments = ("relists", url, "--relists", str(times))
        return await _child(Relists, *_FOOTPRINT, *arguments)


async def _peaks(script: Script) -> Peaks:
    async with replaying(script) as url:
        return await _child(Peaks, *_FOOTPRINT, "peaks", url)


async def _child(result: type[R], *command: str) -> R:
    """Run a measurement in a fresh process; raise ChildFailed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode:
        raise ChildFailed((err.decode().strip().splitlines() or ["no message"])[-1])
    return msgspec.json.decode(out, type=result)


def show(sizes: Sizes, report: Report, console: Console) -> None:
    """Print the report for people."""
    for kind, count, rows in (
        ("machines", sizes.machines, report.machines),
        ("nodes", sizes.nodes, report.nodes),
    ):
        title = f"{count:,} {kind} of {report.object_bytes[kind]:,} bytes"
        title = f"{title}, {count * sizes.rounds:,} events"
        console.print(_race_table(title, rows, report))
    for name, why in report.missing.items():
        console.print(f"{name}: {why}")
    console.print(_plain_table("mcm, the same without a socket", asdict(report.in_process)))
    console.print(_plain_table("mcm, Machines and Nodes at once", asdict(report.mixed)))
    console.print(_plain_table("mcm, lists that bring all anew", asdict(report.relists)))
    for way, found in report.lists_of_pods.items():
        console.print(_plain_table(f"mcm, lists of pods, {way}", asdict(found)))


def _race_table(title: str, rows: Mapping[str, Row], report: Report) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("from socket to queue", no_wrap=True)
    for header in ("events/CPU s", "mcm is", "list CPU s", "list wall s", "bytes/object"):
        table.add_column(header, justify="right")
    for name, row in rows.items():
        table.add_row(f"{name} {report.versions[name]}", *_cells(row, _share(rows, name)))
    for name, row in rows.items():
        if row.failure:
            table.add_row(name, f"failed: {row.failure}")
    return table


def _cells(row: Row, factor: float | None) -> Sequence[str]:
    times, weight = row.times, row.weight
    return (
        f"{times.events_per_cpu_second:,}" if times else "-",
        f"{factor:.2f} x" if factor else "-",
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
    for name in asdict(Sizes()):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--only", choices=NAMES, action="append", help="may be repeated")
    parser.add_argument("--short", action="store_true", help="less of everything, in 90 seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = vars(parser.parse_args())
    as_json, only, short = given.pop("json"), given.pop("only"), given.pop("short")
    asked = {name: value for name, value in given.items() if value is not None}
    sizes = replace(SHORT if short else Sizes(), **asked)
    report = run(measure(sizes, only or NAMES))
    if as_json:
        found = {"bench": "informer", "parameters": asdict(sizes), "results": asdict(report)}
        print(json.dumps(found))
    else:
        show(sizes, report, Console(width=110))


if __name__ == "__main__":
    main()
