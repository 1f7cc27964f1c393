"""The work queue: how many operations a CPU second does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from bench.report.charts import number, ranking
from bench.report.record import Record
from bench.report.section import Headline, Section, Table
from bench.workqueue import Cost

_MEANING: Final = {
    "plain": "add, get, done",
    "repeated": "each key added four times",
    "priorities": "with priorities, half of them raised",
    "delayed": "with delays, each moved once",
    "retried": "two failures and back-off each",
    "workers": "through ten workers",
}


def section(record: Record) -> Section:
    costs = msgspec.convert(record.results, type=Mapping[str, Cost])
    named = {_MEANING.get(name, name): cost for name, cost in costs.items()}
    keys = max(cost.keys for cost in costs.values())
    plain = costs["plain"].operations_per_cpu_second
    return Section(
        title="Work queue",
        asks=f"{keys:,} keys are put into the queue from which controllers take their work, and "
        "taken out again. One operation is one call: an add, a get, a done. More is better.",
        headlines=(Headline("work queue, plain", plain, "operations / CPU s", "more"),),
        pictures=(
            ranking(
                "workqueue",
                "Work queue: operations a CPU second (more is better)",
                {name: cost.operations_per_cpu_second for name, cost in named.items()},
                axis="operations a CPU second",
                caption="Each bar is one way of using the queue, the best of its repetitions.",
            ),
        ),
        tables=(
            Table(
                "",
                ("case", "keys", "operations", "operations / CPU s"),
                [
                    (
                        name,
                        f"{cost.keys:,}",
                        f"{cost.operations:,}",
                        number(cost.operations_per_cpu_second),
                    )
                    for name, cost in named.items()
                ],
            ),
        ),
    )
