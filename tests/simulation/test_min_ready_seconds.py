"""An update of a fleet whose machines must prove themselves before others may go for them."""

from __future__ import annotations

from typing import Any

import msgspec

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINES,
    Machine,
    MachineDeployment,
)
from mcm.sandbox import samples
from mcm.simulation.faults import Broken
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual

FLEET, MINUTE = 3, 60


async def begin(sim: Simulation, **spec: object) -> None:
    await sim.apply(samples.load())
    limits = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}, "type": "RollingUpdate"}
    await change(sim, {"minReadySeconds": MINUTE, "strategy": limits, **spec})
    await sim.until(lambda: sim.running() == FLEET, within=120)
    assert status(sim).available_replicas < FLEET
    await sim.until(lambda: status(sim).available_replicas == FLEET, within=MINUTE + 15)


async def change(sim: Simulation, spec: dict[str, Any]) -> None:
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec}, namespace="default")


def status(sim: Simulation) -> Any:
    (found,) = sim.objects(MACHINE_DEPLOYMENTS)
    return msgspec.convert(found, MachineDeployment).status


def machines(sim: Simulation) -> list[Machine]:
    return [msgspec.convert(m, Machine) for m in sim.objects(MACHINES)]


class Watch:
    """Notes, whenever a machine goes, for how long enough others have run."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._deleted: set[str] = set()
        self.proven: list[float] = []
        sim.on_change(MACHINES, self._look)

    def _look(self) -> None:
        found = machines(self._sim)
        going = {m.metadata.uid for m in found if m.metadata.deletion_timestamp is not None}
        if not going - self._deleted:
            return
        self._deleted |= going
        now = self._sim.clock.now()
        others = [m for m in found if m.phase == "Running" and m.metadata.uid not in going]
        since = sorted(m.status.current_status.last_update_time or now for m in others)
        self.proven.append((now - since[FLEET - 1]).total_seconds())


def test_no_machine_goes_before_enough_have_been_ready_for_a_minute() -> None:
    async def main() -> None:
        async with Simulation(seed=31) as sim:
            await begin(sim)
            watch = Watch(sim)
            old = {m.metadata.uid for m in machines(sim)}
            await change(sim, {"template": {"metadata": {"labels": {"rolled": "yes"}}}})
            took = await sim.until(
                lambda: not old & {m.metadata.uid for m in machines(sim)}, within=900
            )
            assert took > FLEET * MINUTE
            assert len(watch.proven) == FLEET
            assert all(age >= MINUTE for age in watch.proven), watch.proven
            await sim.until(lambda: status(sim).available_replicas == FLEET, within=120)
            before = sim.server.requests.writes(agent="mcm")
            await sim.pass_time(3600)
            assert sim.server.requests.writes(agent="mcm") == before

    run_virtual(main)


def test_a_manager_that_ends_in_between_takes_no_time_off_the_wait() -> None:
    async def main() -> None:
        async with Simulation(seed=32) as sim:
            await begin(sim)
            watch = Watch(sim)
            old = {m.metadata.uid for m in machines(sim)}
            await change(sim, {"template": {"metadata": {"labels": {"rolled": "yes"}}}})
            for _ in range(4):
                await sim.pass_time(47)
                await sim.crash_manager()
                sim.start_manager()
            await sim.until(lambda: not old & {m.metadata.uid for m in machines(sim)}, within=900)
            assert all(age >= MINUTE for age in watch.proven), watch.proven

    run_virtual(main)


def test_a_node_that_was_not_ready_for_a_while_is_waited_for_again() -> None:
    async def main() -> None:
        async with Simulation(seed=33) as sim:
            await begin(sim)
            subject = machines(sim)[0]
            silent = sim.kubelet_faults.add(
                Broken.HANGS, path=f"/(leases|nodes)/{subject.node_name}"
            )
            await sim.until(lambda: status(sim).available_replicas == FLEET - 1, within=120)
            silent.lift()
            await sim.until(lambda: sim.running() == FLEET, within=120)
            took = await sim.until(lambda: status(sim).available_replicas == FLEET, within=120)
            assert MINUTE - 2 <= took <= MINUTE + 2

    run_virtual(main)
