"""The pods of a Node that is drained cannot be watched for twenty minutes."""

from __future__ import annotations

from typing import Any

from mcm.api.core import PODS
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject
from mcm.events import CORE_EVENTS
from mcm.informers.freshness import BEHIND_FOR, CATCHING_UP
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

NAMESPACE = "default"
LONGEST_BACKOFF = 30.0


def test_no_vm_goes_while_its_pods_cannot_be_observed() -> None:
    """A pod that came to the Node unseen keeps its VM: an old list that is empty says nothing. The
    machine says so within seconds, and the drain goes on with the deadline it had."""

    async def main() -> None:
        async with Simulation(seed=5) as sim:
            node = await one_running_machine(sim)
            await sim.apply([pod("seen", node, grace=60)])
            await sim.pass_time(5)
            await scale(sim, 0)
            await sim.until(lambda: is_going(sim, "seen"), within=10)

            cut = sim.clock.monotonic()
            fault = sim.faults.refuse(method="GET", path=r"/api/v1/pods")
            sim.faults.cut_watches()
            await sim.apply([pod("unseen", node, grace=5)])
            await sim.until(lambda: reason_of(sim, node) == "CannotObserve", within=60)
            assert sim.clock.monotonic() - cut < BEHIND_FOR + 5
            message = drained(sim, node)["message"]
            assert "pods cannot be watched since" in message
            version = machine(sim, node)["metadata"]["resourceVersion"]

            await sim.pass_time(1200)
            assert not exists(sim, PODS, "seen")  # its grace period is over, and nobody saw it
            assert exists(sim, PODS, "unseen") and not is_going(sim, "unseen")
            assert exists(sim, VIRTUAL_MACHINES, node)
            assert machine(sim, node)["metadata"]["resourceVersion"] == version  # said once

            fault.lift()
            healed = await sim.until(lambda: is_going(sim, "unseen"), within=120)
            assert healed < LONGEST_BACKOFF + CATCHING_UP + 5
            await sim.until(lambda: not exists(sim, MACHINES, node), within=120)
            assert not exists(sim, VIRTUAL_MACHINES, node)
            assert "ForceDrained" not in event_reasons(sim)

    run_virtual(main)


def test_the_deadline_comes_all_the_same() -> None:
    """Who can see nothing still deletes by force when the time is over, to the second."""

    async def main() -> None:
        async with Simulation(seed=6) as sim:
            node = await one_running_machine(sim, drain_timeout="5m")
            await sim.apply([pod("seen", node, grace=3600)])
            await sim.pass_time(5)
            await scale(sim, 0)
            await sim.until(lambda: is_going(sim, "seen"), within=10)
            began = sim.clock.monotonic()
            sim.faults.refuse(method="GET", path=r"/api/v1/pods")
            sim.faults.cut_watches()
            await sim.until(lambda: reason_of(sim, node) == "CannotObserve", within=60)
            gone = await sim.until(lambda: not exists(sim, VIRTUAL_MACHINES, node), within=400)
            assert 295 < sim.clock.monotonic() - began < 320, gone
            assert "ForceDrained" in event_reasons(sim)

    run_virtual(main)


async def one_running_machine(sim: Simulation, *, drain_timeout: str = "2h") -> str:
    await sim.apply(samples.load())
    template: JSONObject = {"spec": {"drainTimeout": drain_timeout}}
    patch: JSONObject = {"spec": {"replicas": 1, "template": template}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", patch, namespace=NAMESPACE)
    await sim.until(lambda: sim.running() == 1 == len(sim.objects(MACHINES)), within=300)
    return name_of(sim.objects(MACHINES)[0])


async def scale(sim: Simulation, replicas: int) -> None:
    patch: JSONObject = {"spec": {"replicas": replicas}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", patch, namespace=NAMESPACE)


def pod(name: str, node: str, *, grace: int) -> JSONObject:
    """One that was bound by hand: a cordon keeps only the scheduler from a Node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "c", "image": "i"}],
        },
    }


def found(sim: Simulation, resource: Any, name: str) -> dict[str, Any]:
    return next((o for o in sim.objects(resource) if name_of(o) == name), {})


def exists(sim: Simulation, resource: Any, name: str) -> bool:
    return bool(found(sim, resource, name))


def is_going(sim: Simulation, name: str) -> bool:
    here = found(sim, PODS, name)
    return not here or bool(here["metadata"].get("deletionTimestamp"))


def machine(sim: Simulation, name: str) -> dict[str, Any]:
    return found(sim, MACHINES, name)


def drained(sim: Simulation, name: str) -> dict[str, Any]:
    conditions = machine(sim, name).get("status", {}).get("conditions", ())
    return next((c for c in conditions if c["type"] == "Drained"), {})


def reason_of(sim: Simulation, name: str) -> str:
    return str(drained(sim, name).get("reason", ""))


def event_reasons(sim: Simulation) -> set[str]:
    return {str(event["reason"]) for event in found_all(sim)}


def found_all(sim: Simulation) -> list[dict[str, Any]]:
    return sim.objects(CORE_EVENTS)
