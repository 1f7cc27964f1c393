"""Whole fleets: what each phase takes, beside the Go original where it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bench.report.charts import Picture, groups, lines, number
from bench.report.record import Record
from bench.report.section import Headline, Section, Table

_MIB: Final = 2**20
_OURS: Final = "mcm"
_OWN_WRITES: Final = {"create": 5.2, "roll": 14.8, "delete": 7.4}
_EFFICIENCY: Final = 0.75
_PEAK_MIB: Final = 110.0
_WHAT_EFFICIENCY_IS = (
    "Efficiency is the time that the server needs for the phase's requests when nothing else is "
    "asked of it, by the time that the phase took: 1 means that it was never waiting for the "
    "manager."
)

_WITHOUT_TOKENS: Final = frozenset({"create"})
"""Phases whose aim is for machines without bootstrap tokens: each costs two writes more. A roll is
to keep to its aim with them, too."""

GO_WRITES: Final = {"create": 11.6, "roll": 28.8, "delete": 13.3}
"""All writes a machine of the Go original (0.63-dev), as the project's founders measured them with
500 machines, VMs that take no time, no bootstrap tokens, on kube-apiserver 1.32: see
``docs/performance.md``."""


@dataclass(frozen=True, slots=True)
class _Delays:
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class _Phase:
    name: str
    machines: int
    seconds: float
    own_writes_a_machine: float
    events_a_machine: float
    all_writes_a_machine: float
    cpu_milliseconds_a_machine: float
    cpu_seconds: float
    efficiency: float | None = None
    event_to_write: _Delays | None = None
    queue_depth: Sequence[tuple[float, int]] = ()


@dataclass(frozen=True, slots=True)
class _Rates:
    rates: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Run:
    manager: str
    machines: int
    server: str
    server_version: str
    phases: Sequence[_Phase]
    peak_resident_bytes: int
    raw_rates: _Rates | None = None
    remarks: Sequence[str] = ()
    failure: str = ""

    @property
    def title(self) -> str:
        return f"{self.manager}, {self.machines:,} machines"

    @property
    def at(self) -> str:
        return f"{self.server}, {self.server_version}"


@dataclass(frozen=True, slots=True)
class _Results:
    runs: Sequence[_Run]


def section(record: Record) -> Section:
    runs = [run for run in msgspec.convert(record.results, type=_Results).runs if run.phases]
    if not runs:
        return Section("Whole fleets", "No run came to its first phase.")
    first = runs[0]
    # What was kept before there was a choice was measured with tokens.
    tokens = bool(record.parameters.get("bootstrap_tokens", True))
    return Section(
        title="Whole fleets",
        asks=f"{first.machines:,} machines are created, rolled to another template, scaled, killed "
        f"in part, and deleted, at an API server ({first.at}). Their VMs take no time, so that all "
        "the time is the manager's and the server's. Fewer writes, less time and less CPU are "
        f"better. {_WHAT_EFFICIENCY_IS}",
        headlines=_headlines(first, tokens),
        pictures=_pictures(runs, tokens),
        tables=[*(_table(run, tokens) for run in runs), *_raw_rates(first)],
    )


def _headlines(run: _Run, tokens: bool) -> list[Headline]:
    found = []
    for phase in run.phases:
        # Spreads are of equal names, and these are two measurements.
        name = f"{phase.name} {run.machines:,} machines{' with bootstrap tokens' if tokens else ''}"
        aim = _OWN_WRITES.get(phase.name)
        if aim is not None:
            writes = phase.own_writes_a_machine
            aim = None if tokens and phase.name in _WITHOUT_TOKENS else aim
            found.append(Headline(f"{name}: own writes a machine", writes, "", "less", aim))
            seconds = Headline(f"{name}: time", phase.seconds, "s", "less")
            cpu = phase.cpu_milliseconds_a_machine
            found += [seconds, Headline(f"{name}: CPU a machine", cpu, "ms", "less")]
        if phase.efficiency is not None:
            aim = _EFFICIENCY if run.server == "real" else None
            share = phase.efficiency
            found.append(Headline(f"{name}: efficiency", share, "", "more", aim))
    peak = run.peak_resident_bytes / _MIB
    aim = _PEAK_MIB if run.machines <= 500 else None
    return [*found, Headline(f"peak memory, {run.machines:,} machines", peak, "MiB", "less", aim)]


def _pictures(runs: Sequence[_Run], tokens: bool) -> list[Picture]:
    first = runs[0]
    names = [phase.name for phase in first.phases]
    by_run = {run.title: {phase.name: phase for phase in run.phases} for run in runs}

    def each(value: str) -> dict[str, list[float | None]]:
        return {
            title: [getattr(phases.get(name), value, None) for name in names]
            for title, phases in by_run.items()
        }

    return [
        _writes(first, tokens),
        groups(
            "fleet-seconds",
            "Seconds of each phase (less is better)",
            names,
            each("seconds"),
            axis="seconds",
            caption="Until all machines of the phase were as they should be.",
        ),
        groups(
            "fleet-cpu",
            "CPU of the manager, a machine (less is better)",
            names,
            each("cpu_milliseconds_a_machine"),
            axis="CPU milliseconds a machine",
            caption="User and system time of the manager's process, by the machines of the phase.",
        ),
        *_efficiency(names, each("efficiency")),
        *_delays(first),
        *_queue(first),
    ]


def _writes(run: _Run, tokens: bool) -> Picture:
    phases = [phase for phase in run.phases if phase.name in GO_WRITES]
    series: dict[str, list[float | None]] = {
        f"{run.manager}, own": [phase.own_writes_a_machine for phase in phases],
        f"{run.manager}, all": [phase.all_writes_a_machine for phase in phases],
        "Go original, all": [GO_WRITES[phase.name] for phase in phases],
    }
    return groups(
        "fleet-writes",
        "Writes a machine (fewer are better)",
        [phase.name for phase in phases],
        series,
        axis="writes a machine",
        caption="Counted at the API server; all are also events and what kubelets write. Counts do "
        "not depend on the machine, so the Go original's, which the project's founders took "
        f"elsewhere, may stand beside them. {_compared(tokens)}",
    )


def _compared(tokens: bool) -> str:
    if not tokens:
        return "Neither made bootstrap tokens for its machines."
    return (
        "Ours made a bootstrap token for each new machine, and deleted it: two writes a machine "
        "that the original's do not have."
    )


def _efficiency(names: Sequence[str], by_run: Mapping[str, list[float | None]]) -> list[Picture]:
    known = {title: values for title, values in by_run.items() if any(values)}
    if not known:
        return []
    aim: dict[str, list[float | None]] = {"aim": [_EFFICIENCY for _ in names]}
    return [
        groups(
            "fleet-efficiency",
            "Efficiency: how little the server waited for the manager (more is better)",
            names,
            {**known, **aim},
            axis="share of the server's pace",
            caption=_WHAT_EFFICIENCY_IS,
        )
    ]


def _delays(run: _Run) -> list[Picture]:
    found = {phase.name: phase.event_to_write for phase in run.phases if phase.event_to_write}
    if not found:
        return []
    return [
        groups(
            "fleet-delays",
            "From a watch event to the write that answers it (less is better)",
            list(found),
            {
                "half within": [1000 * delays.p50 for delays in found.values()],
                "99 % within": [1000 * delays.p99 for delays in found.values()],
            },
            axis="milliseconds",
            caption=f"{run.title}. When all of a fleet changes at once, events wait in line.",
        )
    ]


def _queue(run: _Run) -> list[Picture]:
    depths = {
        phase.name: [(at, float(keys)) for at, keys in phase.queue_depth]
        for phase in run.phases
        if phase.queue_depth
    }
    if not depths:
        return []
    return [
        lines(
            "fleet-queue",
            "Work that waits, over the time of each phase",
            depths,
            x_axis="seconds since the phase began",
            y_axis="keys in queues",
            caption=f"{run.title}. A line that comes down to zero has no work left; one that stays "
            "up shows that the workers, or the server, are busy.",
        )
    ]


def _table(run: _Run, tokens: bool) -> Table:
    rows = []
    for phase in run.phases:
        delays = phase.event_to_write
        rows.append(
            (
                *(phase.name, f"{phase.machines:,}", number(phase.seconds)),
                *(f"{phase.own_writes_a_machine:.2f}", f"{phase.all_writes_a_machine:.2f}"),
                *(number(phase.cpu_seconds), number(phase.cpu_milliseconds_a_machine)),
                "–" if phase.efficiency is None else f"{phase.efficiency:.2f}",
                f"{number(1000 * delays.p50)} / {number(1000 * delays.p99)}" if delays else "–",
            )
        )
    remarks = "".join(f"; {remark}" for remark in (*run.remarks, run.failure) if remark)
    peak = f"{run.peak_resident_bytes / _MIB:.0f} MiB"
    return Table(
        f"**{run.title}** {'with' if tokens else 'without'} bootstrap tokens at {run.at}; "
        f"peak memory {peak}{remarks}",
        (
            *("phase", "machines", "seconds", "own writes a machine", "all writes a machine"),
            *("CPU s", "CPU ms a machine", "efficiency", "event to write, ms: p50 / p99"),
        ),
        rows,
    )


def _raw_rates(run: _Run) -> list[Table]:
    if run.raw_rates is None:
        return []
    rates = [(name, number(rate)) for name, rate in run.raw_rates.rates.items()]
    title = "What the server answers when nobody watches, measured in the same run:"
    return [Table(title, ("request", "a second"), rates)]
