"""Informers: from a watch's bytes to a queued key, beside what else reads watches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from bench.report.charts import Picture, number, ranking
from bench.report.record import Record
from bench.report.section import Headline, Section, Table

_OURS, _BARE = "mcm", "bare"
_AIM_OF_BARE = 0.7
_AIM_OF_RELISTS = 1.15
_ASKS = """\
A server plays a recorded watch in which every object changes. Each client reads the socket, makes
its objects, keeps them in an indexed store and queues a key, in a process of its own. `bare` is no
client: it reads, decodes and keeps, and does nothing else, so it is about as fast as Python can be.
More events a CPU second are better."""


@dataclass(frozen=True, slots=True)
class _Times:
    events: int
    list_cpu_seconds: float
    events_per_cpu_second: float


@dataclass(frozen=True, slots=True)
class _Weight:
    bytes_per_object: int


@dataclass(frozen=True, slots=True)
class _Row:
    times: _Times | None = None
    weight: _Weight | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class _Relists:
    rss_bytes: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Results:
    machines: Mapping[str, _Row]
    nodes: Mapping[str, _Row]
    versions: Mapping[str, str]
    missing: Mapping[str, str]
    relists: _Relists | None = None


def section(record: Record) -> Section:
    results = msgspec.convert(record.results, type=_Results)
    races = {"Machines": results.machines, "Nodes": results.nodes}
    absent = "; ".join(f"{name} ({why})" for name, why in results.missing.items())
    missing = f" Not measured: {absent}." if absent else ""
    return Section(
        title="Informers",
        asks=f"{_ASKS}{missing}",
        headlines=[
            *(h for kind, rows in races.items() for h in _headlines(kind, rows)),
            *_relisted(results.relists),
        ],
        pictures=[
            picture
            for kind, rows in races.items()
            for picture in _pictures(kind, rows, results.versions)
        ],
        tables=[_table(kind, rows, results.versions) for kind, rows in races.items()],
    )


def _headlines(kind: str, rows: Mapping[str, _Row]) -> list[Headline]:
    found = []
    ours, bare = _speed(rows.get(_OURS)), _speed(rows.get(_BARE))
    if ours:
        found.append(Headline(f"informer, {kind}", ours, "events / CPU s", "more"))
    if ours and bare:
        share = Headline(
            f"informer, {kind}: share of the bare loop", ours / bare, "×", "more", _AIM_OF_BARE
        )
        found.append(share)
    weight = rows[_OURS].weight if _OURS in rows else None
    if weight:
        found.append(
            Headline(
                f"memory of a mirrored object, {kind}", weight.bytes_per_object, "bytes", "less"
            )
        )
    return found


def _relisted(relists: _Relists | None) -> list[Headline]:
    if relists is None or len(relists.rss_bytes) < 2 or not relists.rss_bytes[0]:
        return []
    first, *_, last = relists.rss_bytes
    what = f"memory after {len(relists.rss_bytes) - 1} lists that bring all anew, by the first"
    return [Headline(what, last / first, "×", "less", _AIM_OF_RELISTS)]


def _speed(row: _Row | None) -> float:
    return row.times.events_per_cpu_second if row and row.times else 0.0


def _pictures(kind: str, rows: Mapping[str, _Row], versions: Mapping[str, str]) -> list[Picture]:
    speeds = {name: speed for name, row in rows.items() if (speed := _speed(row))}
    weights = {n: row.weight.bytes_per_object for n, row in rows.items() if row.weight}
    fastest = sorted(speeds, key=speeds.__getitem__, reverse=True)
    lightest = sorted(weights, key=weights.__getitem__)
    label = {name: _label(name, versions) for name in rows}
    return [
        ranking(
            f"informer-speed-{kind.lower()}",
            f"{kind}, from socket to queue: events a CPU second (more is better)",
            {label[name]: speeds[name] for name in fastest},
            axis="events a CPU second",
            caption="All read the same bytes of one server, in turns; the best run of each.",
            ours=label.get(_OURS, ""),
        ),
        ranking(
            f"informer-memory-{kind.lower()}",
            f"{kind}, kept in memory: bytes an object (less is better)",
            {label[name]: weights[name] for name in lightest},
            axis="bytes an object",
            caption="Counted by tracemalloc (client-go: by its own heap), after each has changed.",
            ours=label.get(_OURS, ""),
        ),
    ]


def _label(name: str, versions: Mapping[str, str]) -> str:
    if name == _BARE:
        return "bare loop"
    return f"{name} {versions.get(name, '')}".strip()


def _table(kind: str, rows: Mapping[str, _Row], versions: Mapping[str, str]) -> Table:
    ours = _speed(rows.get(_OURS))
    lines = []
    for name, row in rows.items():
        t, weight = row.times, row.weight
        lines.append(
            (
                _label(name, versions) + (f" (failed: {row.failure})" if row.failure else ""),
                number(t.events_per_cpu_second) if t else "–",
                f"{ours / t.events_per_cpu_second:.1f} ×" if t and ours else "–",
                f"{t.list_cpu_seconds:.2f}" if t else "–",
                number(weight.bytes_per_object) if weight else "–",
            )
        )
    headers = (kind, "events / CPU s", "mcm is faster by", "list, CPU s", "bytes / object")
    return Table("", headers, lines)
