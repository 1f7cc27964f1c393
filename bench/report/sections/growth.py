"""Growth: whether a machine of a large fleet costs more than one of a small fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bench.report.charts import lines, number
from bench.report.record import Record
from bench.report.section import Headline, Section, Table

_AIM: Final = 1.1


@dataclass(frozen=True, slots=True)
class _Cost:
    phase: str
    fleet: int
    cpu_ms: float
    calls: float
    writes: float
    adds: float
    watch_events: float


@dataclass(frozen=True, slots=True)
class _Results:
    costs: Sequence[_Cost]
    growth: Mapping[str, Mapping[str, float]]


def section(record: Record) -> Section:
    found = msgspec.convert(record.results, type=_Results)
    phases = list(dict.fromkeys(cost.phase for cost in found.costs))
    sizes = sorted({cost.fleet for cost in found.costs})
    measure, axis = (
        ("calls", "function calls a machine")
        if all(cost.calls for cost in found.costs)
        else ("cpu_ms", "CPU milliseconds a machine")
    )
    return Section(
        title="Growth",
        asks=f"The same phases with {sizes[0]:,} to {sizes[-1]:,} machines, in a simulated cluster "
        "on virtual time. What a machine costs should not depend on how many others there are: a "
        "flat line is best.",
        headlines=[
            Headline(
                f"{phase}: a machine's {axis.partition(' a ')[0]}, {sizes[-1]:,} by {sizes[0]:,}",
                found.growth[phase][measure],
                "×",
                "less",
                _AIM,
            )
            for phase in phases
            if measure in found.growth.get(phase, {})
        ],
        pictures=(
            lines(
                "growth",
                "Cost of a machine by size of the fleet (flat is best)",
                {
                    phase: [
                        (float(cost.fleet), getattr(cost, measure))
                        for cost in sorted(found.costs, key=lambda c: c.fleet)
                        if cost.phase == phase
                    ]
                    for phase in phases
                },
                x_axis="machines in the fleet",
                y_axis=axis,
                caption="A line for each phase of a fleet's life; a dot for each size.",
                dots=True,
            ),
        ),
        tables=(
            Table(
                "Of one machine:",
                ("phase", "machines", "CPU ms", "calls", "writes", "queued", "watch events"),
                [
                    (
                        *(cost.phase, f"{cost.fleet:,}", number(cost.cpu_ms)),
                        *(number(cost.calls) if cost.calls else "–", f"{cost.writes:.2f}"),
                        *(number(cost.adds), number(cost.watch_events)),
                    )
                    for cost in sorted(found.costs, key=lambda c: (phases.index(c.phase), c.fleet))
                ],
            ),
        ),
    )
