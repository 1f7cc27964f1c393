"""One page of a run, in Markdown, with its pictures beside it: for people who see it first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.report.charts import number
from bench.report.plan import BENCHES, Bench
from bench.report.record import RAW, Record
from bench.report.section import Headline, Section, Table, plain
from bench.report.sections import SECTIONS
from bench.report.surroundings import Surroundings

PAGE: Final = "README.md"
_PICTURES: Final = "pictures"
_INTRODUCTION: Final = """\
`mcm` keeps fleets of VMs in the state that Kubernetes objects declare. This page shows one run of
its benches on one machine. Times and CPU seconds hold on that machine alone; counts of writes, and
ratios of numbers of this run, hold elsewhere too.
[How it is measured, and how to read it](../../../docs/performance.md).
"""
_WHAT: Final = {bench.name: bench.what for bench in BENCHES}


def write(records: Sequence[Record], earlier: Sequence[Sequence[Record]], folder: Path) -> Path:
    """Write page and pictures of a run into its folder; ``earlier`` ones give the spread."""
    sections = {record.bench: section_of(record) for record in _in_order(records)}
    pictures = folder / _PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    for section in sections.values():
        for picture in section.pictures:
            (pictures / f"{picture.name}.svg").write_bytes(picture.svg)
    page = folder / PAGE
    page.write_text(_text(records, sections, _values(earlier)))
    return page


def section_of(record: Record) -> Section:
    """Return what there is to say; of results in a shape that is not known, the bare numbers."""
    what = _WHAT.get(record.bench, "")
    if not record.results:
        return Section(record.bench, what)
    try:
        return SECTIONS[record.bench](record)
    except (KeyError, msgspec.ValidationError):
        return plain(record.bench, what, record.results)


def _in_order(records: Sequence[Record]) -> list[Record]:
    order = {bench.name: number for number, bench in enumerate(reversed(BENCHES))}
    return sorted(records, key=lambda record: order.get(record.bench, len(order)))


def _values(runs: Sequence[Sequence[Record]]) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = {}
    for records in runs:
        for record in records:
            for headline in section_of(record).headlines:
                found.setdefault(headline.what, []).append(headline.value)
    return found


def _text(
    records: Sequence[Record],
    sections: Mapping[str, Section],
    earlier: Mapping[str, Sequence[float]],
) -> str:
    parts = ["# What mcm costs, and how fast it is\n", _conditions(records)]
    headlines = [line for section in sections.values() for line in section.headlines]
    if headlines:
        parts.append(_headlines(headlines, earlier))
    parts += _absent(records)
    for name, section in sections.items():
        parts += _section(name, section, next(r for r in records if r.bench == name))
    return "\n".join(parts)


def _conditions(records: Sequence[Record]) -> str:
    if not records:
        return "No bench was run.\n"
    where: Surroundings = records[0].surroundings
    changed = ", with changes" if where.changed else ""
    rows = [
        ("measured", f"{where.date}, in {sum(r.seconds for r in records):.0f} s altogether"),
        ("mcm", f"{where.mcm}, commit {where.commit[:12]}{changed}"),
        ("machine", where.machine),
        ("system", f"{where.system}, {where.python}"),
        ("libraries", ", ".join(f"{n} {v}" for n, v in where.packages.items())),
        ("real API server", where.api_server),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return f"{_INTRODUCTION}\n| | |\n|---|---|\n{table}\n"


def _headlines(headlines: Sequence[Headline], earlier: Mapping[str, Sequence[float]]) -> str:
    rows = []
    for line in headlines:
        aim = (
            ""
            if line.aim is None
            else f"{'≤' if line.better == 'less' else '≥'} {number(line.aim)}"
        )
        met = {None: "", True: " ✓", False: " ✗"}[line.met]
        values = [*earlier.get(line.what, ()), line.value]
        spread = f"{number(min(values))} – {number(max(values))}, {len(values)} runs"
        rows.append(
            (
                line.what,
                f"{number(line.value)} {line.unit}",
                line.better,
                aim + met,
                spread if len(values) > 1 else "one run",
            )
        )
    headers = ("what", "measured", "better is", "aim", "spread on this machine")
    return Table("## In short", headers, rows).markdown()


def _absent(records: Sequence[Record]) -> list[str]:
    lines = [
        f"- `{r.bench}` failed: {r.failure} (`{RAW}/{r.bench}.log`)" for r in records if r.failure
    ]
    run = {record.bench for record in records}
    lines += [f"- `{b.name}` was not run" for b in BENCHES if b.name not in run]
    return ["## What is missing\n", *lines, ""] if lines else []


def _section(name: str, section: Section, record: Record) -> list[str]:
    if not section.tables and not section.pictures:
        return []
    parts = [f"## {section.title}\n", f"{section.asks}\n"]
    for picture in section.pictures:
        parts.append(f"![{picture.title}]({_PICTURES}/{picture.name}.svg)\n")
        parts.append(f"*{picture.caption}*\n")
    parts += [table.markdown() for table in section.tables]
    command = " ".join(record.command)
    raw = f"[`{RAW}/{name}.json`]({RAW}/{name}.json)"
    where = record.surroundings
    when = f"{where.date[:16].replace('T', ' ')} UTC, commit {where.commit[:12]}"
    parts.append(f"Raw numbers: {raw}, of `{command}`, {record.seconds:.0f} s; {when}.\n")
    return parts


def named(names: Sequence[str]) -> list[Bench]:
    """Return the benches of these names, in the order of the plan; all if none is named."""
    return [bench for bench in BENCHES if not names or bench.name in names]
