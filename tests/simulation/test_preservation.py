"""Machines that are kept for somebody to look at, in a fleet that the whole manager runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES, Machine
from mcm.api.names import ANNOTATION_PRESERVE, TAINT_PRESERVED
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual

FLEET = 3
QUICK = Options(
    settings=ControllerSettings(
        health_timeout=timedelta(minutes=1), preserve_timeout=timedelta(minutes=30)
    )
)


def machines(sim: Simulation) -> list[Machine]:
    found = [msgspec.convert(m, Machine) for m in sim.objects(MACHINES)]
    return sorted(found, key=lambda m: m.metadata.name)


def machine(sim: Simulation, name: str) -> Machine | None:
    return next((m for m in machines(sim) if m.metadata.name == name), None)


async def begin(sim: Simulation) -> Machine:
    """Run a fleet, and return one of its machines."""
    await sim.apply(samples.load())
    await sim.until(lambda: sim.running() == FLEET, within=120)
    await sim.pass_time(30)
    return machines(sim)[0]


async def ask(sim: Simulation, of: Machine, value: str | None) -> None:
    body: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION_PRESERVE: value}}}
    await sim.client.patch(NODES, of.node_name, body)


async def kill(sim: Simulation, victim: Machine) -> None:
    name = victim.metadata.name
    await sim.client.delete(VIRTUAL_MACHINES, name, namespace="default")


def failed(sim: Simulation, name: str) -> bool:
    found = machine(sim, name)
    return found is not None and found.phase == "Failed"


def kept_replicas(sim: Simulation) -> int:
    (deployment,) = sim.objects(MACHINE_DEPLOYMENTS)
    status: Any = deployment["status"]
    return int(status.get("preservedFailedReplicas", 0))


def test_a_failed_machine_is_kept_until_nobody_asks_and_replaced_then() -> None:
    async def main() -> None:
        async with Simulation(seed=11, options=QUICK) as sim:
            subject = await begin(sim)
            name = subject.metadata.name
            await ask(sim, subject, "when-failed")
            await kill(sim, subject)
            await sim.until(lambda: failed(sim, name), within=240)
            await sim.pass_time(60)
            assert kept_replicas(sim) == 1
            node: Any = next(
                n
                for n in sim.objects(NODES)
                if n["metadata"]["name"] == subject.node_name  # type: ignore[index]
            )
            assert TAINT_PRESERVED in [t["key"] for t in node["spec"]["taints"]]
            before = sim.server.requests.writes(agent="mcm")
            await sim.pass_time(600)
            assert sim.server.requests.writes(agent="mcm") == before
            assert sim.running() == FLEET - 1
            assert failed(sim, name)

            await ask(sim, subject, None)
            took = await sim.until(lambda: machine(sim, name) is None, within=60)
            assert took < 30
            await sim.until(lambda: sim.running() == FLEET, within=120)
            assert kept_replicas(sim) == 0

    run_virtual(main)


def test_a_machine_whose_time_is_over_is_replaced_at_once_and_others_may_fail_meanwhile() -> None:
    async def main() -> None:
        async with Simulation(seed=12, options=QUICK) as sim:
            subject = await begin(sim)
            name, other = subject.metadata.name, machines(sim)[1]
            await ask(sim, subject, "when-failed")
            await kill(sim, subject)
            await sim.until(lambda: failed(sim, name), within=240)
            await sim.pass_time(5)
            kept = machine(sim, name)
            assert kept is not None
            until = kept.status.current_status.preserve_expiry_time
            assert until is not None
            # The limit of one at a time does not count what is kept.
            await kill(sim, other)
            await sim.until(lambda: machine(sim, other.metadata.name) is None, within=300)
            await sim.until(lambda: sim.running() == FLEET - 1, within=120)
            assert failed(sim, name)

            await sim.pass_time((until - sim.clock.now()).total_seconds() - 1)
            assert failed(sim, name)
            took = await sim.until(lambda: machine(sim, name) is None, within=60)
            assert took < 30
            await sim.until(lambda: sim.running() == FLEET, within=120)

    run_virtual(main)


def test_an_update_and_a_scale_down_are_not_held_up() -> None:
    async def main() -> None:
        async with Simulation(seed=13, options=QUICK) as sim:
            subject = await begin(sim)
            name = subject.metadata.name
            await ask(sim, subject, "when-failed")
            await kill(sim, subject)
            await sim.until(lambda: failed(sim, name), within=240)
            await sim.pass_time(5)
            await sim.client.patch(
                MACHINE_DEPLOYMENTS,
                "sample",
                {"spec": {"template": {"metadata": {"annotations": {"update": "1"}}}}},
                namespace="default",
            )
            await sim.until(lambda: sim.running() == FLEET, within=600)
            await sim.client.patch(
                MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": 0}}, namespace="default"
            )
            await sim.until(lambda: not machines(sim), within=120)
            assert not sim.objects(NODES)
            assert not sim.objects(VIRTUAL_MACHINES)

    run_virtual(main)
