"""Drains: how long they take against the longest chain of what must happen one after the other."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bench.drain import LIMIT, Cost
from bench.report.charts import groups, number
from bench.report.record import Record
from bench.report.section import Headline, Section, Table


def section(record: Record) -> Section:
    costs = msgspec.convert(record.results, type=Mapping[str, Cost])
    return Section(
        title="Drains",
        asks="All pods leave a Node, or all Nodes of a fleet at once, in a simulated cluster whose "
        "pods and disks take the time that they are told to. The longest chain is what must happen "
        "one step after the other, whoever drains. As long as that is best; less would mean that "
        "something was not waited for. Seconds are virtual, so they are the same on any machine.",
        headlines=[
            Headline(f"drain, {name}: time by longest chain", c.ratio, "×", "less", LIMIT)
            for name, c in costs.items()
        ],
        pictures=(
            groups(
                "drain",
                "Drains: seconds until the last pod has left (less is better)",
                [f"{name}: {c.nodes:,} Nodes, {c.pods:,} pods" for name, c in costs.items()],
                {
                    "mcm": [c.seconds for c in costs.values()],
                    "longest chain": [c.ideal_seconds for c in costs.values()],
                },
                axis="virtual seconds",
                caption="Beside each drain stands the shortest time in which anybody could do it.",
            ),
        ),
        tables=(
            Table(
                "",
                (
                    *("drained", "Nodes", "pods", "seconds", "longest chain", "ratio"),
                    *("evictions", "refused", "other writes", "reads"),
                ),
                [
                    (
                        *(name, f"{c.nodes:,}", f"{c.pods:,}", number(c.seconds)),
                        *(number(c.ideal_seconds), f"{c.ratio:.2f}", f"{c.evictions:,}"),
                        *(f"{c.refused:,}", f"{c.writes:,}", f"{c.reads:,}"),
                    )
                    for name, c in costs.items()
                ],
            ),
        ),
    )
