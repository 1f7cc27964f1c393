"""A fleet updated in place, a few machines at a time, through faults and ends of the process."""

from __future__ import annotations

import asyncio
from collections import Counter

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
)
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

FLEET = 9
AT_ONCE = 3
AGENT_TAKES = 45.0
_MARKS = (LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT)


class Rollout:
    """Whoever rolls an update out, and the node agents: they know Nodes and Machines only by what
    the API says, and look every few seconds."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.worked: Counter[str] = Counter()
        self.updated: set[str] = set()
        self._begun: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            for name in [name_of(machine) for machine in self._sim.objects(MACHINES)]:
                machine = await self._sim.client.get(MACHINES, name, namespace="default")
                await self._tend(machine)
            await self._sim.clock.sleep(5)

    async def _tend(self, machine: Machine) -> None:
        name, now = machine.node_name, self._sim.clock.monotonic()
        marks = marks_of(await self._sim.client.get(NODES, name))
        if not marks.candidate and name not in self.updated:
            await self._label(name, {LABEL_CANDIDATE_FOR_UPDATE: "true"})
        elif marks.candidate and not marks.selected and len(self._begun) < AT_ONCE:
            self._begun[name] = 0.0
            await self._label(name, {LABEL_SELECTED_FOR_UPDATE: "true"})
        elif marks.stage is Stage.READY and marks.result is None:
            began = self._begun.get(name) or now
            self._begun[name] = began
            if now - began >= AGENT_TAKES:
                self.worked[name] += 1
                await self._label(name, {LABEL_UPDATE_RESULT: "successful"})
        elif marks.awaits_hand_over and _shows_success(machine):
            self.updated.add(name)
            del self._begun[name]
            await self._label(name, dict.fromkeys(_MARKS), unschedulable=False)

    async def _label(
        self, name: str, labels: dict[str, str | None], *, unschedulable: bool | None = None
    ) -> None:
        patch: JSONObject = {"metadata": {"labels": labels}}
        if unschedulable is not None:
            patch["spec"] = {"unschedulable": unschedulable}
        await self._sim.client.patch(NODES, name, patch)


def _shows_success(machine: Machine) -> bool:
    reasons = {condition.reason for condition in machine.status.conditions}
    return machine.phase != "InPlaceUpdating" and "UpdateSuccessful" in reasons


def test_a_fleet_is_updated_in_place_and_no_machine_is_replaced() -> None:
    async def main() -> None:
        async with Simulation(seed=11) as sim:
            await sim.apply(samples.load())
            await sim.client.patch(
                MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": FLEET}}, namespace="default"
            )
            await sim.until(lambda: sim.running() == FLEET, within=120)
            await sim.pass_time(30)
            vms = {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)}
            rollout = Rollout(sim)
            rolling = asyncio.create_task(rollout.run())
            for _ in range(4):
                sim.faults.answer(409, method="PATCH", path="/nodes/", times=3)
                sim.faults.lose_answers(method="PATCH", times=2)
                sim.faults.answer(500, method="PATCH", path="/machines/", times=2)
                await sim.pass_time(40)
                sim.faults.cut_watches(WatchEnd.TORN)
                await sim.pass_time(20)
                await sim.crash_manager()
                await sim.pass_time(10)
                sim.start_manager()
            await sim.until(
                lambda: len(rollout.updated) == FLEET and sim.running() == FLEET,
                within=1800,
                what="all are updated",
            )
            await sim.pass_time(60)
            rolling.cancel()
            await asyncio.gather(rolling, return_exceptions=True)
            assert {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)} == vms
            assert set(rollout.worked.values()) == {1}
            for name in [name_of(node) for node in sim.objects(NODES)]:
                node = await sim.client.get(NODES, name)
                assert not node.spec.unschedulable
                assert ANNOTATION_CORDONED_BY_MCM not in node.metadata.annotations
            await sim.pass_time(420)
            before = sim.server.requests.writes(agent="mcm")
            await sim.pass_time(600)
            assert sim.server.requests.writes(agent="mcm") == before

    run_virtual(main)
