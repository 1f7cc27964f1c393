"""How long drains take under virtual time, and what they ask for, against the longest chain.

The whole manager drains in an embedded cluster whose kubelets, disks and API server take the time
they are told to. Nothing waits in earnest: what is measured are virtual seconds, and requests.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import final

from rich.console import Console
from rich.table import Table

from bench.drain_load import Chain, Disks, Load, Replicas, bound_pod, fleet, longest
from mcm.api.core import PODS
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox.apiserver.requests.counters import WRITE_VERBS
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

_OTHERS = ("events", "leases", "virtualmachines")
LIMIT = 1.2
"""How much longer than its longest chain a drain may take. One that takes less does not wait for
what it should."""

ONE_NODE: tuple[Load, ...] = (
    Disks("fast", pods=20, termination=1.0, detach=0.6, attach=3.0),
    Disks("slow", pods=10, termination=1.0, detach=2.0, attach=8.0),
    Replicas("guarded", pods=40, termination=5.0, at_once=10),
    Replicas("free", pods=40, termination=25.0),
)
_NODES, _FEW_NODES = 1000, 50
_LONG_LIVED, _HARDLY_BEATING = 600.0, 120.0


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """``ratio`` is ``seconds`` by those of the ``longest_chain``. ``evictions`` counts all that
    were asked for, ``refused`` those that were not granted; ``writes`` are the manager's others,
    but for events and leases."""

    nodes: int
    pods: int
    seconds: float
    longest_chain: str
    ideal_seconds: float
    ratio: float
    evictions: int
    refused: int
    writes: int
    reads: int
    cpu_seconds: float


async def one_node(loads: Sequence[Load], latency: float) -> Cost:
    """Drain a Node full of pods to another one; it is over when the last disk is there."""
    pods = sum(load.pods for load in loads)
    async with Simulation(seed=1) as sim:
        await sim.apply(fleet(1, pods=pods))
        await sim.until(lambda: sim.running() == 1, within=60)
        (full,) = map(name_of, sim.objects(MACHINES))
        for load in loads:
            await sim.apply(load.manifests())
        await sim.until(lambda: _ready(sim) == pods, within=3600)
        await sim.client.patch(
            MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": 2}}, namespace="default"
        )
        await sim.until(lambda: sim.running() == 2, within=60)
        run = _Run(sim, [full], pods, latency)
        await sim.client.delete(MACHINES, full, namespace="default")
        return await run.cost(longest(loads))


async def many_nodes(nodes: int, pods: int, latency: float) -> Cost:
    """Drain all Nodes of a fleet at once, of pods that nobody replaces."""
    terminations = [5.0 + 25.0 * number / max(1, pods - 1) for number in range(pods)]
    async with Simulation(
        seed=2, node_grace=_LONG_LIVED, heartbeat_interval=_HARDLY_BEATING
    ) as sim:
        await sim.apply(fleet(nodes, pods=pods))
        await sim.until(lambda: sim.running() == nodes, within=600)
        machines = [name_of(machine) for machine in sim.objects(MACHINES)]
        for machine in machines:
            await sim.apply(
                bound_pod(f"{machine}-{number:02}", machine, termination=seconds)
                for number, seconds in enumerate(terminations)
            )
        await sim.pass_time(10)
        run = _Run(sim, machines, nodes * pods, latency)
        await sim.client.delete(MACHINE_DEPLOYMENTS, "sample", namespace="default")
        return await run.cost(Chain("the slowest pod", max(terminations)))


@final
class _Run:
    """What is measured from now on, until the last of ``machines`` has no VM any more."""

    def __init__(self, sim: Simulation, machines: Sequence[str], pods: int, latency: float) -> None:
        self._sim = sim
        self._left = set(machines)
        self._nodes, self._pods = len(machines), pods
        self._over = 0.0
        sim.on_change(VIRTUAL_MACHINES, self._look)
        if latency:
            sim.faults.delay(latency, watch=False)
        sim.server.requests.reset()
        gc.collect()
        self._began, self._cpu = sim.clock.monotonic(), time.process_time()

    def _look(self) -> None:
        if not self._left:
            return
        self._left &= set(map(name_of, self._sim.objects(VIRTUAL_MACHINES)))
        self._over = self._sim.clock.monotonic()

    async def cost(self, chain: Chain) -> Cost:
        within = 3 * chain.seconds + 600
        await self._sim.until(lambda: not self._left, within=within)
        cpu = time.process_time() - self._cpu
        seconds = self._over - self._began
        asked = _Requests(self._sim)
        return Cost(
            nodes=self._nodes,
            pods=self._pods,
            seconds=round(seconds, 2),
            longest_chain=chain.what,
            ideal_seconds=round(chain.seconds, 2),
            ratio=round(seconds / chain.seconds, 3),
            evictions=asked.evictions(),
            refused=asked.evictions() - asked.evictions(granted=True),
            writes=asked.other_writes(),
            reads=asked.reads(),
            cpu_seconds=round(cpu, 1),
        )


@final
class _Requests:
    """The manager's, but for what it tells in events, its leases, and its calls of the cloud."""

    def __init__(self, sim: Simulation) -> None:
        self._counts = {
            kind: count
            for kind, count in sim.server.requests.snapshot().items()
            if kind.agent == "mcm" and kind.resource.partition(".")[0] not in _OTHERS
        }

    def evictions(self, *, granted: bool = False) -> int:
        return sum(
            count
            for kind, count in self._counts.items()
            if kind.subresource == "eviction" and (kind.code < 300 or not granted)
        )

    def other_writes(self) -> int:
        return self._of(WRITE_VERBS) - self.evictions()

    def reads(self) -> int:
        return self._of(("get", "list"))

    def _of(self, verbs: Collection[str]) -> int:
        return sum(count for kind, count in self._counts.items() if kind.verb in verbs)


def _ready(sim: Simulation) -> int:
    conditions = (_at(pod, "status", "conditions") for pod in sim.objects(PODS))
    return sum(
        any(c["type"] == "Ready" and c["status"] == "True" for c in found)
        for found in conditions
        if isinstance(found, list)
    )


def _at(obj: JSONObject, *path: str) -> object:
    value: object = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def measure(nodes: int, pods: int, latency: float) -> Mapping[str, Cost]:
    return {
        "one full node": run_virtual(partial(one_node, ONE_NODE, latency)),
        "all of a fleet": run_virtual(partial(many_nodes, nodes, pods, latency)),
    }


def show(costs: Mapping[str, Cost], console: Console) -> None:
    """Print the costs for people."""
    table = Table("drained")
    for header in ("nodes", "pods", "seconds", "ideal", "ratio", "evictions", "refused"):
        table.add_column(header, justify="right")
    for header in ("writes", "reads", "CPU s"):
        table.add_column(header, justify="right")
    for name, cost in costs.items():
        numbers = asdict(cost)
        del numbers["longest_chain"]
        table.add_row(name, *(f"{value:,}" for value in numbers.values()))
    console.print(table)
    for name, cost in costs.items():
        console.print(f"{name}: the longest chain is {cost.longest_chain}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, help=f"{_NODES:,} if not given, {_FEW_NODES} in short")
    parser.add_argument("--pods", type=int, default=30, help="on each of them")
    parser.add_argument("--latency", type=float, default=0.005, help="of a request, in seconds")
    parser.add_argument("--short", action="store_true", help="the form that `make bench` runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # of what lasts longer than a person would wait for
    nodes = given.nodes or (_FEW_NODES if given.short else _NODES)
    costs = measure(nodes, given.pods, given.latency)
    if given.json:
        results = {name: asdict(cost) for name, cost in costs.items()}
        parameters = {"nodes": nodes, "pods": given.pods, "latency_seconds": given.latency}
        print(json.dumps({"bench": "drain", "parameters": parameters, "results": results}))
    else:
        show(costs, Console(width=120))
    if odd := [name for name, cost in costs.items() if not 1 <= cost.ratio <= LIMIT]:
        sys.exit(f"not between 1 and {LIMIT} times as long as the longest chain: {', '.join(odd)}")


if __name__ == "__main__":
    main()
