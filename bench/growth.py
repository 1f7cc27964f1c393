"""What a machine costs the manager in fleets of 100 to 10,000, phase by phase: what grows shows.

The whole manager works under virtual time on an API server that takes a while for each request.
One deployment's machines are created, rolled by 20 %, killed in part, and deleted. Each number is
of one machine that the phase is about, so that a fleet a hundred times as large should show the
same.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final, final

from rich.console import Console
from rich.table import Table

from bench.manager_side import CallMeter, CpuMeter, ManagerSide, Meter, run_metered
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.sandbox.apiserver.requests.counters import WRITE_VERBS
from mcm.simulation.harness import Simulation, name_of, phase_of

SIZES: Final = (100, 300, 1_000, 3_000, 10_000)
PHASES: Final = ("create", "roll", "kill", "delete")
SHORT: Final = (100, 400)
ANSWER: Final = 0.05
"""Seconds that the API server takes for a request: with 64 under way at a time, 1,280 a second,
which is about what a real one on two cores takes."""
_KILLED: Final = 0.05
_SHOWN: Final = (
    "machineset",
    "machinedeployment",
    "machinesafetyovershooting",
    "machine",
    "node",
)
_BEAT, _GRACE = 120.0, 300.0
_LONG: Final = 100_000.0
_NOT_OWN: Final = ("events", "leases", "virtualmachines")
_NAME, _NAMESPACE = "sample", "default"


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """What a phase took, a machine of those it is about. ``seconds`` are virtual, and of the whole
    phase. ``calls`` are of Python functions, 0 where they were not counted."""

    phase: str
    fleet: int
    machines: int
    seconds: float
    cpu_ms: float
    calls: float
    writes: float
    reconciles: Mapping[str, float]
    adds: float
    watch_events: float
    watch_kib: float


@final
@dataclass(frozen=True, slots=True)
class _Totals:
    """All that is counted, since the beginning."""

    at: float
    cpu: float
    calls: Counter[str]
    writes: int
    reconciles: Counter[str]
    adds: int
    events: int
    received: int

    @classmethod
    def of(cls, sim: Simulation, meter: Meter) -> _Totals:
        informers = [
            informer
            for factory in (sim.manager.control_informers, sim.manager.target_informers)
            if factory is not None
            for informer in factory.informers()
        ]
        return cls(
            at=sim.clock.monotonic(),
            cpu=meter.seconds if isinstance(meter, CpuMeter) else 0.0,
            calls=Counter(meter.calls()) if isinstance(meter, CallMeter) else Counter(),
            writes=_own_writes(sim),
            reconciles=_samples(sim, "mcm_controller_reconcile_total", "controller"),
            adds=_samples(sim, "mcm_workqueue_adds_total", "name").total(),
            events=sum(sum(informer.stats.events.values()) for informer in informers),
            received=sum(informer.stats.received_bytes for informer in informers),
        )


def _own_writes(sim: Simulation) -> int:
    return sum(
        count
        for kind, count in sim.server.requests.snapshot().items()
        if kind.agent == "mcm"
        and kind.verb in WRITE_VERBS
        and kind.resource.partition(".")[0] not in _NOT_OWN
    )


def _samples(sim: Simulation, name: str, label: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for family in sim.registry.collect():
        for sample in family.samples:
            if sample.name == name:
                found[sample.labels[label]] += int(sample.value)
    return found


@final
class Phases:
    """Takes a fleet through its phases, and says what each cost.

    ``calls`` says, by phase, how often each function was called a machine, if calls are counted.
    """

    def __init__(self, sim: Simulation, meter: Meter, fleet: int) -> None:
        self._sim = sim
        self._meter = meter
        self._fleet = fleet
        self.costs: list[Cost] = []
        self.calls: dict[str, Mapping[str, float]] = {}

    async def take(self, phases: Collection[str] = PHASES) -> None:
        """Take it through ``phases``; the first is taken in any case."""
        killed = max(1, int(self._fleet * _KILLED))
        await self._measured("create", self._fleet, self._create)
        if "roll" in phases:
            await self._measured("roll", self._fleet, self._roll)
        if "kill" in phases:
            await self._measured("kill", killed, partial(self._kill, killed))
        if "delete" in phases:
            await self._measured("delete", self._fleet, self._delete)

    async def _measured(self, phase: str, machines: int, act: Callable[[], object]) -> None:
        gc.collect()
        before = _Totals.of(self._sim, self._meter)
        done = act()
        assert hasattr(done, "__await__")
        await done
        # What comes late belongs to it: the event recorder's, and what waits for quiet.
        seconds = self._sim.clock.monotonic() - before.at
        await self._sim.pass_time(30)
        after = _Totals.of(self._sim, self._meter)
        calls = after.calls - before.calls
        self.calls[phase] = {name: count / machines for name, count in calls.items()}
        print(f"{self._fleet} {phase}: {time.process_time():.0f} s", file=sys.stderr, flush=True)
        self.costs.append(
            Cost(
                phase=phase,
                fleet=self._fleet,
                machines=machines,
                seconds=round(seconds, 1),
                cpu_ms=round((after.cpu - before.cpu) * 1e3 / machines, 3),
                calls=round(calls.total() / machines, 1),
                writes=round((after.writes - before.writes) / machines, 3),
                reconciles={
                    name: round(count / machines, 3)
                    for name, count in (after.reconciles - before.reconciles).items()
                },
                adds=round((after.adds - before.adds) / machines, 3),
                watch_events=round((after.events - before.events) / machines, 3),
                watch_kib=round((after.received - before.received) / 1024 / machines, 2),
            )
        )

    async def _create(self) -> None:
        await self._sim.apply(_manifests(self._fleet))
        await self._until_running()

    async def _roll(self) -> None:
        old = self._uids()
        template: JSONObject = {"template": {"spec": {"class": {"name": "large"}}}}
        await self._change(template)
        await self._sim.until(lambda: not old & self._uids(), within=_LONG)
        await self._until_running()

    async def _kill(self, machines: int) -> None:
        """Take machines' VMs away behind the manager's back."""
        old = self._uids()
        victims = [name_of(vm) for vm in self._sim.objects(VIRTUAL_MACHINES)][:machines]
        for name in victims:
            await self._sim.client.delete(VIRTUAL_MACHINES, name, namespace=_NAMESPACE)
        left = self._fleet - machines
        await self._sim.until(lambda: len(old & self._uids()) <= left, within=_LONG)
        await self._until_running()

    async def _delete(self) -> None:
        await self._sim.client.delete(MACHINE_DEPLOYMENTS, _NAME, namespace=_NAMESPACE)
        await self._sim.until(lambda: not self._sim.objects(MACHINES), within=_LONG)

    async def _until_running(self) -> None:
        """Wait until all are there, and nobody else."""

        def settled() -> bool:
            machines = self._sim.objects(MACHINES)
            return len(machines) == self._fleet and all(phase_of(m) == "Running" for m in machines)

        await self._sim.until(settled, within=_LONG)

    async def _change(self, spec: JSONObject) -> None:
        change: JSONObject = {"spec": spec}
        await self._sim.client.patch(MACHINE_DEPLOYMENTS, _NAME, change, namespace=_NAMESPACE)

    def _uids(self) -> set[str]:
        return {str(_at(machine, "metadata", "uid")) for machine in self._sim.objects(MACHINES)}


def _at(obj: JSONObject, *path: str) -> object:
    value: object = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _manifests(machines: int) -> Iterable[JSONObject]:
    """Yield a fleet whose VMs take no time, and which goes on by 20 %."""
    twenty: JSONObject = {"maxSurge": "20%", "maxUnavailable": "20%"}
    steps = ("create", "delete", "boot", "join")
    for manifest in samples.load():
        if manifest["kind"] == "MachineClass":
            yield {**manifest, "providerSpec": {f"{step}Latency": "0s" for step in steps}}
            continue
        if manifest["kind"] == "MachineDeployment":
            spec = manifest["spec"]
            assert isinstance(spec, dict)
            strategy: JSONObject = {"type": "RollingUpdate", "rollingUpdate": twenty}
            spec = {**spec, "replicas": machines, "strategy": strategy}
            manifest = {**manifest, "spec": spec}
        yield manifest


def measure(
    fleet: int, meter: Meter, *, phases: Collection[str] = PHASES, answer: float = ANSWER
) -> Phases:
    """Take a fleet through its phases on a loop of its own."""
    side = ManagerSide(meter)

    async def main() -> Phases:
        async with Simulation(
            seed=1,
            heartbeat_interval=_BEAT,
            node_grace=_GRACE,
            carried_by=side.transport,
        ) as sim:
            if answer:
                sim.faults.delay(answer, watch=False)
            taken = Phases(sim, meter, fleet)
            await taken.take(phases)
            return taken

    gc.collect()
    gc.disable()  # it would look through what the server keeps, at the manager's cost
    try:
        return run_metered(main, side)
    finally:
        gc.enable()


def growth(costs: Sequence[Cost]) -> Mapping[str, Mapping[str, float]]:
    """Return, by phase and number, how many times as much the largest fleet costs as the smallest,
    a machine."""
    found: dict[str, dict[str, float]] = {}
    for phase in dict.fromkeys(cost.phase for cost in costs):
        of_phase = sorted((c for c in costs if c.phase == phase), key=lambda c: c.fleet)
        least, most = asdict(of_phase[0]), asdict(of_phase[-1])
        found[phase] = {
            name: round(most[name] / least[name], 3)
            for name in ("cpu_ms", "calls", "writes", "adds", "watch_events")
            if least[name]
        }
    return found


def show(costs: Sequence[Cost], console: Console) -> None:
    """Print the costs for people."""
    table = Table("phase", "fleet", title="of one machine", title_justify="left")
    headers = ("s in all", "CPU ms", "calls", "writes", "adds", "events", "KiB")
    for header in headers:
        table.add_column(header, justify="right")
    table.add_column(
        "reconciles: sets, deployments, overshooting, machines, nodes, all", justify="right"
    )
    for cost in sorted(costs, key=lambda c: [p.phase for p in costs].index(c.phase)):
        numbers = (
            cost.seconds,
            cost.cpu_ms,
            cost.calls,
            cost.writes,
            cost.adds,
            cost.watch_events,
            cost.watch_kib,
        )
        shown = [cost.reconciles[name] for name in _SHOWN]
        reconciles = " ".join(f"{n:6.2f}" for n in (*shown, sum(cost.reconciles.values())))
        table.add_row(cost.phase, f"{cost.fleet:,}", *(f"{n:,}" for n in numbers), reconciles)
    console.print(table)
    for phase, numbers_of in growth(costs).items():
        grown = ", ".join(f"{name} × {times:.2f}" for name, times in numbers_of.items())
        console.print(f"{phase}: the largest fleet's machine costs {grown}")


def show_calls(found: Sequence[Phases], console: Console, *, most: int = 25) -> None:
    """Print which functions a machine of the largest fleet costs more calls of."""
    least, largest = found[0], found[-1]
    for phase, calls in largest.calls.items():
        before = least.calls[phase]
        grown = {name: count - before.get(name, 0.0) for name, count in calls.items()}
        console.print(f"\n{phase}: calls a machine, of them more than in the smallest fleet")
        for name, more in sorted(grown.items(), key=lambda item: -item[1])[:most]:
            console.print(f"{calls[name]:>12,.1f} {more:>+12,.1f}  {name}", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, nargs="+", help=f"sizes, {SIZES} unless given")
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=PHASES)
    parser.add_argument("--short", action="store_true", help=f"sizes {SHORT}")
    parser.add_argument("--calls", action="store_true", help="count calls instead of CPU time")
    parser.add_argument("--answer", type=float, default=ANSWER, help="seconds a request takes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    logging.disable(logging.ERROR)
    sizes = given.machines or (SHORT if given.short else SIZES)
    console = Console(width=160)
    found = []
    for size in sizes:
        meter = CallMeter() if given.calls else CpuMeter()
        found.append(measure(size, meter, phases=given.phases, answer=given.answer))
    costs = [cost for phases in found for cost in phases.costs]
    if given.json:
        results = {"costs": [asdict(cost) for cost in costs], "growth": growth(costs)}
        parameters = {"machines": list(sizes), "answer": given.answer, "calls": given.calls}
        print(json.dumps({"bench": "growth", "parameters": parameters, "results": results}))
        return
    show(costs, console)
    if given.calls:
        show_calls(found, console)


if __name__ == "__main__":
    main()
