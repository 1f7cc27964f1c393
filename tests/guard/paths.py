"""The paths whose cost is held. Each is played with one seed on virtual time, and what it took is
divided by how often it was taken."""

from __future__ import annotations

import asyncio
import gc
import random
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from bench.drain_load import fleet
from bench.inprocess import Recording
from bench.recorded_objects import KINDS, NAMESPACE
from bench.replay import chunks_of
from bench.workqueue import CASES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import KubeObject
from mcm.clock import LoopClock
from mcm.informers import Change, Informer
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from mcm.workqueue import ExponentialLimiter, WorkQueue
from tests.guard.cost import BYTES, INSTRUCTIONS, Cost
from tests.guard.meter import Meter
from tests.unit.machine.bench import bench

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_KEYS, _EVENTS, _FEW, _PODS, _PASSES = 200, 200, 8, 30, 10
_WEIGHED = 1000
_QUIET_SECONDS = 300.0


def measure(names: Sequence[str] = ()) -> dict[str, Cost]:
    """Return the cost of each path, or of those that are named."""
    return {name: take() for name, take in PATHS.items() if not names or name in names}


# ---- queue and mirror --------------------------------------------------------------------------


def _queue(case: str) -> Cost:
    keys = [f"{NAMESPACE}/machine-{number:06d}" for number in range(_KEYS)]
    meter = Meter()

    async def main() -> int:
        queue: WorkQueue[str] = WorkQueue(
            "guard", clock=LoopClock(_EPOCH), limiter=ExponentialLimiter()
        )
        with meter.counting():
            _, operations = await CASES[case](queue, keys)
        return operations

    return _instructions(meter, per=run_virtual(main))


def _event(kind: str) -> Cost:
    meter = Meter()

    async def main() -> int:
        informer, queue, source = _mirror(kind, _EVENTS, rounds=1)
        running = asyncio.create_task(informer.run())
        await informer.wait_synced()
        with meter.counting():
            source.play.set()
            await source.played.wait()
        assert len(queue) == _EVENTS
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return _EVENTS

    return _instructions(meter, per=run_virtual(main))


def _weight(kind: str) -> Cost:
    async def main() -> int:
        informer, queue, source = _mirror(kind, _WEIGHED, rounds=1)
        gc.collect()
        tracemalloc.start()
        running = asyncio.create_task(informer.run())
        await informer.wait_synced()
        source.play.set()
        await source.played.wait()
        while (key := queue.get_nowait()) is not None:
            queue.done(key)
        gc.collect()
        weight = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return weight // _WEIGHED

    return Cost(BYTES, run_virtual(main))


def _mirror(
    name: str, count: int, rounds: int
) -> tuple[Informer[KubeObject], WorkQueue[str], Recording]:
    kind = KINDS[name]
    source = Recording(kind.listed(count), chunks_of(b"".join(kind.events(count, rounds))))
    clock = LoopClock(_EPOCH)
    informer = Informer(source, kind.resource, clock=clock, randomness=random.Random(0))
    queue: WorkQueue[str] = WorkQueue("guard", clock=clock)

    def enqueue(change: Change[KubeObject]) -> None:
        queue.add(change.object.metadata.key)

    informer.store.add_index("owner", lambda o: [r.uid for r in o.metadata.owner_references])
    informer.store.add_index("label", lambda o: [o.metadata.labels.get(kind.indexed[0], "")])
    informer.add_handler(enqueue)
    return informer, queue, source


# ---- controllers -------------------------------------------------------------------------------


def _idle_reconcile() -> Cost:
    """One of a machine that runs, in which there is nothing to do."""
    return run_virtual(partial(_reconciles, _FEW * _PASSES, pods=0))


def _waiting_drain() -> Cost:
    """A pass over pods that are all asked to go, and have not gone yet."""
    return run_virtual(partial(_reconciles, _PASSES, pods=_PODS))


async def _reconciles(times: int, *, pods: int) -> Cost:
    meter = Meter()
    async with bench() as b:
        await b.make_class()
        await b.running()
        for number in range(pods):
            await b.run_pod(f"pod-{number:02}")
        if pods:
            await b.delete_machine()
        await b.settle(5.0)
        machines = next(c for c in b.controllers if c.name == "machine")
        writes, before = len(b.writes), b.reconciles()
        with meter.counting():
            for _ in range(times):
                machines.queue.add("default/m")
                await b.settle(0.01)
        assert len(b.writes) == writes
        assert b.reconciles() == before + times
    return _instructions(meter, per=times)


def _machines(what: str) -> Cost:
    """The whole manager, over a part of a fleet's life; a machine each."""
    return run_virtual(partial(_fleet, what))


async def _fleet(what: str) -> Cost:
    meter = Meter()
    async with Simulation(seed=5) as sim:
        await sim.apply(fleet(_FEW // 2, pods=_PODS))
        await sim.until(lambda: sim.running() == _FEW // 2, within=120)
        await sim.pass_time(30)
        if what == _CREATED:
            with meter.counting():
                await _scale(sim, _FEW // 2 + _FEW)
            return _instructions(meter, per=_FEW)
        if what == _ROLLED:
            with meter.counting():
                await _roll(sim, _FEW // 2)
            return _instructions(meter, per=_FEW // 2)
        if what == _QUIET:
            with meter.counting():
                await sim.pass_time(_QUIET_SECONDS)
            return _instructions(meter, per=_FEW // 2 * _QUIET_SECONDS / 60)
        await _scale(sim, _FEW // 2 + _FEW)
        with meter.counting():
            await _scale(sim, _FEW // 2)
        return _instructions(meter, per=_FEW)


async def _scale(sim: Simulation, replicas: int) -> None:
    spec = {"spec": {"replicas": replicas}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", spec, namespace="default")
    await sim.until(lambda: sim.running() == len(sim.objects(MACHINES)) == replicas, within=600)
    await sim.pass_time(10)


async def _roll(sim: Simulation, replicas: int) -> None:
    old = _uids(sim)
    spec = {"template": {"metadata": {"labels": {"rolled": "yes"}}}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec}, namespace="default")
    await sim.until(lambda: not old & _uids(sim), within=600)
    await _scale(sim, replicas)


def _uids(sim: Simulation) -> set[str]:
    return {str(machine["metadata"]["uid"]) for machine in sim.objects(MACHINES)}  # type: ignore[index]


def _instructions(meter: Meter, *, per: float) -> Cost:
    def of(counts: Mapping[str, int]) -> dict[str, int]:
        return {name: round(n / per) for name, n in sorted(counts.items()) if round(n / per)}

    total = round(meter.instructions / per)
    codec_calls = round(meter.codec_calls / per, 1)
    return Cost(INSTRUCTIONS, total, codec_calls, of(meter.by_room()), of(meter.by_function()))


_CREATED, _DELETED = "machine created, whole manager", "machine deleted, whole manager"
_ROLLED = "machine replaced by a rolling update, whole manager"
_QUIET = "minute of a machine that runs and whose Node reports"

PATHS: Final[Mapping[str, Callable[[], Cost]]] = {
    "work queue: operation": partial(_queue, "plain"),
    "work queue: operation of a delayed key": partial(_queue, "delayed"),
    "work queue: operation of a key that failed": partial(_queue, "retried"),
    "Machine event, from chunk to queue": partial(_event, "machines"),
    "Node event, from chunk to queue": partial(_event, "nodes"),
    "Machine in memory": partial(_weight, "machines"),
    "Node in memory": partial(_weight, "nodes"),
    "reconcile of a machine that changes nothing": _idle_reconcile,
    f"pass of a drain that waits for {_PODS} pods": _waiting_drain,
    **{what: partial(_machines, what) for what in (_CREATED, _ROLLED, _DELETED, _QUIET)},
}
