"""A large fleet at rest: what it costs to keep watching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from bench.report.charts import groups, number
from bench.report.record import Record
from bench.report.section import Headline, Section, Table

_QUIET, _BEATING, _RESIDENT = 1.0, 8.0, 700.0
"""Aims for 10,000 machines, Nodes and 100,000 pods: percent of a core, and MiB."""
_AIMED_AT: Final = 100_000


@dataclass(frozen=True, slots=True)
class _Spread:
    least: float
    median: float
    most: float

    def __str__(self) -> str:
        return f"{number(self.median)} ({number(self.least)} – {number(self.most)})"


@dataclass(frozen=True, slots=True)
class _Look:
    cpu_percent: _Spread
    wake_ups_per_second: _Spread
    writes: int
    seconds: float
    events: int = 0


@dataclass(frozen=True, slots=True)
class _Results:
    objects: int
    resident_mib: float
    peak_mib: float
    quiet: _Look
    heartbeats: _Look


def section(record: Record) -> Section:
    found = msgspec.convert(record.results, type=_Results)
    of = f"{found.objects:,} objects"
    aims = found.objects >= _AIMED_AT
    looks = {"nothing changes": found.quiet, "each Node reports": found.heartbeats}
    return Section(
        title="A large fleet at rest",
        asks=f"A manager watches {of} (machines, Nodes, pods) of which none needs anything: first "
        "nothing changes at all, then each Node reports its health, about once a minute each. Less "
        "CPU and memory are better, and nothing should be written. Behind each number stand the "
        "least and the most of several slices of time.",
        headlines=[
            Headline(
                f"{of} at rest: CPU",
                found.quiet.cpu_percent.median,
                "% of a core",
                "less",
                _QUIET if aims else None,
            ),
            Headline(
                f"{of}, Nodes reporting: CPU",
                found.heartbeats.cpu_percent.median,
                "% of a core",
                "less",
                _BEATING if aims else None,
            ),
            Headline(
                f"{of}: memory", found.resident_mib, "MiB", "less", _RESIDENT if aims else None
            ),
        ],
        pictures=(
            groups(
                "steady-cpu",
                f"CPU with {of} (less is better)",
                list(looks),
                {
                    "median": [look.cpu_percent.median for look in looks.values()],
                    "least": [look.cpu_percent.least for look in looks.values()],
                    "most": [look.cpu_percent.most for look in looks.values()],
                },
                axis="percent of one core",
                caption="Median, least and most of the slices that were looked at.",
            ),
        ),
        tables=(
            Table(
                f"{number(found.resident_mib)} MiB resident, {number(found.peak_mib)} at most.",
                ("", "% of a core", "wake-ups a second", "events", "writes", "seconds"),
                [
                    (
                        *(name, str(look.cpu_percent), str(look.wake_ups_per_second)),
                        *(f"{look.events:,}", f"{look.writes:,}", number(look.seconds)),
                    )
                    for name, look in looks.items()
                ],
            ),
        ),
    )
