"""What the work queue costs: operations a CPU-second. ``python -m bench.workqueue [--json]``.

Each case puts every key through the queue and takes it out again, and counts what came out; one
operation is one call (an add, a get, a done). Cases:

* ``plain``: add all, then get and done each;
* ``repeated``: as plain, but each key is added four times before it is taken;
* ``priorities``: as plain, with priorities and a raise of every other key while it waits;
* ``delayed``: add all with delays, each moved once to an earlier time, then get and done each when
  due (on a loop with virtual time: nothing waits, but each timer is paid for);
* ``retried``: each key fails twice with exponential back-off, then succeeds;
* ``workers``: as plain, through ``await get()`` of ten concurrent workers.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial

from rich.console import Console
from rich.table import Table

from mcm.clock import LoopClock
from mcm.simulation.virtualtime import run_virtual
from mcm.workqueue import INITIAL_PRIORITY, ExponentialLimiter, QueueShutDown, WorkQueue

_KEYS, _FEW_KEYS = 100_000, 20_000
_WORKERS = 10
_ADDS = 4
_FAILURES = 2
_LONGEST = 1000.0


@dataclass(frozen=True, slots=True)
class Cost:
    """``handed_out`` is how often a key came out of the queue."""

    keys: int
    handed_out: int
    operations: int
    operations_per_cpu_second: int


Case = Callable[[WorkQueue[str], Sequence[str]], Awaitable[tuple[int, int]]]
"""Run a case; return how many keys were handed out and how many operations there were."""


def _take_all(queue: WorkQueue[str]) -> int:
    taken = 0
    while (key := queue.get_nowait()) is not None:
        queue.done(key)
        taken += 1
    return taken


async def _plain(queue: WorkQueue[str], keys: Sequence[str]) -> tuple[int, int]:
    for key in keys:
        queue.add(key)
    taken = _take_all(queue)
    return taken, len(keys) + 2 * taken


async def _repeated(queue: WorkQueue[str], keys: Sequence[str]) -> tuple[int, int]:
    for _turn in range(_ADDS):
        for key in keys:
            queue.add(key)
    taken = _take_all(queue)
    return taken, _ADDS * len(keys) + 2 * taken


async def _priorities(queue: WorkQueue[str], keys: Sequence[str]) -> tuple[int, int]:
    for at, key in enumerate(keys):
        queue.add(key, priority=INITIAL_PRIORITY + at % 7)
    raised = keys[::2]
    for key in raised:
        queue.add(key, priority=10)
    taken = _take_all(queue)
    return taken, len(keys) + len(raised) + 2 * taken


async def _delayed(queue: WorkQueue[str], keys: Sequence[str]) -> tuple[int, int]:
    delays = random.Random(0)
    for key in keys:
        delay = delays.uniform(1.0, _LONGEST)
        queue.add_after(key, delay)
        queue.add_after(key, delay / 2)
    taken = 0
    while len(queue) or queue.delayed:
        queue.done(await queue.get())
        taken += 1
    return taken, 2 * len(keys) + 2 * taken


async def _retried(queue: WorkQueue[str], keys: Sequence[str]) -> tuple[int, int]:
    for key in keys:
        queue.add(key)
    taken = 0
    while len(queue) or queue.delayed:
        key = await queue.get()
        taken += 1
        if queue.failures(key) < _FAILURES:
            queue.add_rate_limited(key)
        else:
            queue.forget(key)
        queue.done(key)
    return taken, len(keys) + 3 * taken


async def _workers(queue: WorkQueue[str], keys: Sequence[str]) -> tuple[int, int]:
    taken = 0

    async def work() -> None:
        nonlocal taken
        while True:
            try:
                key = await queue.get()
            except QueueShutDown:
                return
            taken += 1
            queue.done(key)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _number in range(_WORKERS):
            group.create_task(work())
        await asyncio.sleep(0)
        for key in keys:
            queue.add(key)
        queue.shut_down()
    return taken, len(keys) + 2 * taken


CASES: Mapping[str, Case] = {
    "plain": _plain,
    "repeated": _repeated,
    "priorities": _priorities,
    "delayed": _delayed,
    "retried": _retried,
    "workers": _workers,
}


async def _measured(case: Case, keys: Sequence[str]) -> Cost:
    clock = LoopClock(datetime(2000, 1, 1, tzinfo=UTC))
    queue: WorkQueue[str] = WorkQueue("bench", clock=clock, limiter=ExponentialLimiter())
    gc.collect()
    started = time.process_time()
    handed_out, operations = await case(queue, keys)
    seconds = time.process_time() - started
    return Cost(len(keys), handed_out, operations, round(operations / seconds))


def measure(keys: int, repeat: int) -> Mapping[str, Cost]:
    """Return the cheapest of ``repeat`` runs of each case."""
    names = [f"shoot--project--cluster/machine-{number:06d}" for number in range(keys)]
    found: dict[str, Cost] = {}
    for name, case in CASES.items():
        runs = [run_virtual(partial(_measured, case, names)) for _ in range(repeat)]
        found[name] = max(runs, key=lambda cost: cost.operations_per_cpu_second)
    return found


def show(costs: Mapping[str, Cost], console: Console) -> None:
    """Print the costs for people."""
    table = Table("case")
    for header in ("keys", "handed out", "operations", "operations/CPU s"):
        table.add_column(header, justify="right")
    for name, cost in costs.items():
        table.add_row(name, *(f"{value:,}" for value in asdict(cost).values()))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keys", type=int, help=f"{_KEYS:,} if not given, {_FEW_KEYS:,} in short")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="the form that `make bench` runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    keys = given.keys or (_FEW_KEYS if given.short else _KEYS)
    costs = measure(keys, given.repeat)
    if given.json:
        results = {name: asdict(cost) for name, cost in costs.items()}
        parameters = {"keys": keys, "repeat": given.repeat}
        print(json.dumps({"bench": "workqueue", "parameters": parameters, "results": results}))
    else:
        show(costs, Console(width=100))


if __name__ == "__main__":
    main()
