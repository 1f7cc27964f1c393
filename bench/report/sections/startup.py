"""Cold start and failover of a large fleet: how soon a manager acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import msgspec

from bench.report.charts import groups, number
from bench.report.record import Record
from bench.report.section import Headline, Section, Table

_AIMED_AT: Final = 100_000
_SYNCED, _ACTS, _RESIDENT = 20.0, 1.0, 700.0
"""Aims for 10,000 machines, Nodes and 100,000 pods: seconds, and MiB."""


@dataclass(frozen=True, slots=True)
class _Cold:
    synced: float
    leading: float
    first_act: float
    cpu_seconds: float
    resident_mib: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class _Failover:
    won: float
    first_act: float
    standby_resident_mib: float
    standby_cpu_percent: float


@dataclass(frozen=True, slots=True)
class _Results:
    objects: int
    cold: Sequence[_Cold]
    failover: Sequence[_Failover]


def section(record: Record) -> Section:
    found = msgspec.convert(record.results, type=_Results)
    of = f"{found.objects:,} objects"
    aims = found.objects >= _AIMED_AT
    steps = {
        "start: everything in memory": [run.synced for run in found.cold],
        "start: leads": [run.leading for run in found.cold],
        "start: first act": [run.first_act for run in found.cold],
        "failover: lease won": [run.won for run in found.failover],
        "failover: first act, from there": [run.first_act for run in found.failover],
    }
    known = {step: values for step, values in steps.items() if values}
    return Section(
        title="Start and failover",
        asks=f"A manager starts at a server with {of} (machines, Nodes, pods) among which one "
        "machine needs something, and acts. Then the leader is killed, and a standby takes over: "
        "until it may, the dead one's lease has to run out. Less time is better.",
        headlines=_headlines(of, known, found, aims=aims),
        pictures=(
            groups(
                "startup",
                f"Start and failover with {of} (less is better)",
                list(known),
                {
                    "median": [median(values) for values in known.values()],
                    "least": [min(values) for values in known.values()],
                    "most": [max(values) for values in known.values()],
                },
                axis="seconds",
                caption="Times of a start are since the process began; the first act of a failover "
                "is timed from the moment when the standby had won the lease.",
            ),
        ),
        tables=(
            Table(
                "",
                ("", "median", "least", "most"),
                [
                    (step, number(median(values)), number(min(values)), number(max(values)))
                    for step, values in {**known, **_costs(found)}.items()
                ],
            ),
        ),
    )


def _headlines(
    of: str, steps: dict[str, list[float]], found: _Results, *, aims: bool
) -> list[Headline]:
    lines = []
    for step, what, aim in (
        ("start: everything in memory", f"{of}: all in memory after", _SYNCED),
        ("failover: first act, from there", f"{of}: standby acts after", _ACTS),
    ):
        if step in steps:
            value = median(steps[step])
            lines.append(Headline(what, value, "s", "less", aim if aims else None))
    if found.cold:
        peak = median(run.peak_mib for run in found.cold)
        aim_of_peak = _RESIDENT if aims else None
        lines.append(Headline(f"{of}: peak memory of a start", peak, "MiB", "less", aim_of_peak))
    return lines


def _costs(found: _Results) -> dict[str, list[float]]:
    costs = {
        "start: CPU seconds": [run.cpu_seconds for run in found.cold],
        "start: MiB resident": [run.resident_mib for run in found.cold],
        "start: MiB at most": [run.peak_mib for run in found.cold],
        "standby: MiB resident": [run.standby_resident_mib for run in found.failover],
        "standby: % of a core": [run.standby_cpu_percent for run in found.failover],
    }
    return {what: values for what, values in costs.items() if values}
