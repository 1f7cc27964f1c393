"""Many Nodes drained at once: others are served as ever, deadlines hold, and so after a crash.

With volumes by the dozen a fleet of this size takes minutes to build: here each Node has a few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mcm.api.core import PODS, VOLUME_ATTACHMENTS
from mcm.api.machine import MACHINES
from mcm.api.names import ANNOTATION_DRAIN_RECORD
from mcm.drain.record import Record, read_record
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.drains.many_nodes import (
    EvictionsAsked,
    Moments,
    budget,
    disk,
    machine,
    named,
    objects,
    pod,
    without_machines,
)
from tests.thoroughness import THOROUGH

NODES_DRAINED = 100 if THOROUGH else 16
DRAIN_TIMEOUT = timedelta(minutes=10)
PATIENCE = timedelta(minutes=3)
BLOCKED = ("leaving-0", "leaving-1", "leaving-2")
"""Machines with a pod that a budget never lets go. The last one is to ask so long only."""


@dataclass
class Fleet:
    """Machines that leave, with pods on their Nodes, and others that are none of their business."""

    sim: Simulation
    nodes: int
    pods: int = 2
    volumes: int = 2
    grace: int = 1
    leaving: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.leaving = [f"leaving-{number}" for number in range(self.nodes)]

    async def grow(self) -> None:
        sim = self.sim
        await sim.apply(without_machines())
        await sim.apply(machine(name, **self._spec(name)) for name in self.leaving)
        await sim.apply(machine(f"calm-{n}", healthTimeout="5s") for n in range(4))
        await sim.until(lambda: sim.running() == self.nodes + 4, within=600)

    async def populate(self) -> None:
        sim = self.sim
        every = [(name, k) for name in self.leaving for k in range(self.pods)]
        await sim.apply(m for name, k in every for d in self._disks(name, k) for m in disk(d))
        await sim.apply([budget("kept", maxUnavailable=0)])
        await sim.apply(
            pod(f"{n}-{k}", n, claims=self._disks(n, k), grace=self.grace) for n, k in every
        )
        await sim.apply(pod(f"{name}-kept", name, app="kept") for name in BLOCKED)
        wanted = len(every) + len(BLOCKED)
        await sim.until(lambda: self._running_pods() == wanted, within=600)
        assert len(objects(sim, VOLUME_ATTACHMENTS)) == len(every) * self.volumes
        await sim.pass_time(15)

    async def leave(self) -> datetime:
        """Have the machines deleted; return when that began."""
        began = self.sim.clock.now()
        for name in self.leaving:
            await self.sim.client.delete(MACHINES, name, namespace="default")
        return began

    def kept_pods(self) -> dict[str, dict[str, Any]]:
        """Return the pods that budgets hold and nobody has deleted yet, by name."""
        return {
            p["metadata"]["name"]: p
            for p in objects(self.sim, PODS)
            if p["metadata"]["labels"]["app"] == "kept" and "deletionTimestamp" not in p["metadata"]
        }

    def left(self) -> list[str]:
        return [n for m in self.sim.objects(MACHINES) if "leaving" in (n := name_of(m))]

    def record_of(self, name: str) -> Record:
        found = named(self.sim, MACHINES, name)
        assert found is not None
        return read_record(found["metadata"]["annotations"][ANNOTATION_DRAIN_RECORD]).record

    def _disks(self, name: str, pod_number: int) -> list[str]:
        return [f"{name}-{pod_number}-{number}" for number in range(self.volumes)]

    def _running_pods(self) -> int:
        return sum(p["status"].get("phase") == "Running" for p in objects(self.sim, PODS))

    @staticmethod
    def _spec(name: str) -> dict[str, Any]:
        spec: dict[str, Any] = {"drainTimeout": f"{DRAIN_TIMEOUT.seconds}s"}
        if name == BLOCKED[-1]:
            spec["maxEvictRetries"] = PATIENCE.seconds // 20
        return spec


def test_others_are_served_as_if_nobody_were_drained() -> None:
    """Creations, and what becomes of machines whose VM dies."""
    alone, beside_drains = _served(drains=False), _served(drains=True)
    assert alone.keys() == beside_drains.keys()
    late = {what: beside_drains[what] - alone[what] for what in alone}
    for (name, phase), seconds in late.items():
        # A timeout counts from the time in the status, which is in whole seconds: how soon after it
        # began its second decides when it is over, and differs between the two fleets.
        assert seconds <= (1.2 if phase == "Failed" else 0.2), (name, phase, late)


def _served(*, drains: bool) -> dict[tuple[str, str], float]:
    """Return how long others' machines took to come up, and to be found ill and given up once their
    Nodes were silent, by name and phase."""
    taken: dict[tuple[str, str], float] = {}

    async def main() -> None:
        async with Simulation(seed=41) as sim:
            fleet = Fleet(sim, NODES_DRAINED, grace=10)
            await fleet.grow()
            if drains:
                await fleet.populate()
            # The Nodes are found silent while others are drained.
            for number in range(4):
                await sim.client.delete(VIRTUAL_MACHINES, f"calm-{number}", namespace="default")
                await sim.pass_time(2)
            await sim.pass_time(22)
            moments = Moments(sim)
            made: dict[str, float] = {}
            if drains:
                await fleet.leave()
            for number in range(8):
                fresh = [f"fresh-{number}-{n}" for n in range(3)]
                made |= dict.fromkeys(fresh, sim.clock.monotonic())
                await sim.apply(machine(name) for name in fresh)
                await sim.pass_time(2)
            assert len(moments.silent.keys() & {f"calm-{n}" for n in range(4)}) == 4
            assert len(fleet.left()) == NODES_DRAINED
            await sim.pass_time(60)
            assert len(fleet.left()) == (len(BLOCKED) if drains else NODES_DRAINED)
            for name, start in made.items():
                taken[name, "Running"] = moments.first[name, "Running"] - start
            for name in sorted(n for n in moments.silent if "calm" in n):
                ill = moments.first[name, "Unknown"]
                taken[name, "Unknown"] = ill - moments.silent[name]
                taken[name, "Failed"] = moments.first[name, "Failed"] - ill

    run_virtual(main)
    return taken


def test_deadlines_hold_to_the_second_and_a_crash_makes_nothing_be_asked_twice() -> None:
    async def main() -> None:
        async with Simulation(seed=42) as sim:
            fleet = Fleet(sim, 20 if THOROUGH else 8, pods=4, volumes=1)
            await fleet.grow()
            await fleet.populate()
            asked = EvictionsAsked(sim)
            wanted = {
                p["metadata"]["uid"]
                for p in objects(sim, PODS)
                if p["metadata"]["labels"]["app"] != "kept"
            }
            began = await fleet.leave()
            await sim.until(lambda: len(asked.by_uid) >= len(wanted) // 2, within=60)
            held_since = {name: fleet.record_of(name).held_since for name in BLOCKED}
            assert all(len(held) == 1 for held in held_since.values())

            await sim.crash_manager()
            sim.start_manager()
            await sim.until(lambda: len(objects(sim, MACHINES)) == 3 + 4, within=120)
            assert set(asked.by_uid) == wanted
            assert set(asked.by_uid.values()) == {1}

            await _await(sim, began + PATIENCE - timedelta(seconds=1.5))
            assert {name: fleet.record_of(name).held_since for name in BLOCKED} == held_since
            assert len(fleet.kept_pods()) == 3
            await sim.pass_time(2)  # since it was held, which was within half a second
            assert fleet.kept_pods().keys() == {"leaving-0-kept", "leaving-1-kept"}

            await _await(sim, began + DRAIN_TIMEOUT - timedelta(seconds=1))
            assert len(fleet.kept_pods()) == 2
            await _await(sim, began + DRAIN_TIMEOUT + timedelta(seconds=1))
            assert not fleet.kept_pods()
            await sim.pass_time(5)
            left = {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)}
            assert not left & set(fleet.leaving)
            # Nobody ever asked for whom a budget holds.
            assert set(asked.by_uid) == wanted

    run_virtual(main)


async def _await(sim: Simulation, moment: datetime) -> None:
    await sim.pass_time((moment - sim.clock.now()).total_seconds())
