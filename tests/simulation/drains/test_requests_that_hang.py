"""Requests that nobody answers for half a minute: what people want then, and deadlines, hold."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mcm.api.core import NODES, PODS
from mcm.api.machine import MACHINES
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

WEBHOOK = 25.0
"""Seconds that it takes over an eviction."""


def test_force_does_not_wait_for_evictions_that_hang() -> None:
    async def main() -> None:
        async with Simulation(seed=31) as sim:
            machine = await _draining(sim, drain_timeout="2h")
            await sim.client.patch(
                MACHINES,
                machine,
                {"metadata": {"labels": {"force-deletion": "True"}}},
                namespace="default",
            )
            assert await sim.until(lambda: _deletions(sim) == 3, within=2) <= 1.5
            await sim.until(lambda: machine not in _vms(sim), within=30)

    run_virtual(main)


@pytest.mark.parametrize("said_at_first", [True, False])
def test_a_deadline_does_not_wait_for_evictions_that_hang(*, said_at_first: bool) -> None:
    """It is the drain's from the start, or somebody brings it forward."""

    async def main() -> None:
        async with Simulation(seed=32) as sim:
            machine = await _draining(sim, drain_timeout="12s" if said_at_first else "2h")
            if not said_at_first:
                await sim.client.patch(
                    MACHINES, machine, {"spec": {"drainTimeout": "12s"}}, namespace="default"
                )
            passed = await sim.until(lambda: _deletions(sim) == 3, within=20)
            assert 6 <= passed <= 8.5  # it was deleted five seconds ago

    run_virtual(main)


def test_a_slow_answer_is_waited_for_where_nothing_else_is_wanted() -> None:
    async def main() -> None:
        async with Simulation(seed=33) as sim:
            machine = await _draining(sim, drain_timeout="2h")
            await sim.client.patch(
                MACHINES,
                machine,
                {"metadata": {"annotations": {"example.org/note": "mine"}}},
                namespace="default",
            )
            await sim.until(lambda: machine not in _vms(sim), within=120)
            accepted = sim.server.requests.total(
                resource="pods", subresource="eviction", agent="mcm"
            )
            assert accepted == 3
            assert _deletions(sim) == 0

    run_virtual(main)


async def _draining(sim: Simulation, *, drain_timeout: str) -> str:
    """Have a machine deleted five seconds ago, whose pods' evictions hang since; return it."""
    manifests = [cast("dict[str, Any]", manifest) for manifest in samples.load()]
    for manifest in manifests:
        if manifest["kind"] == "MachineDeployment":
            manifest["spec"]["replicas"] = 1
            manifest["spec"]["template"]["spec"]["drainTimeout"] = drain_timeout
    await sim.apply(manifests)
    await sim.until(lambda: sim.running() == 1, within=120)
    node = name_of(sim.objects(NODES)[0])
    await sim.apply(_pod(f"app-{number}", node) for number in range(3))
    await sim.pass_time(10)
    (machine,) = (name_of(m) for m in sim.objects(MACHINES))
    sim.faults.delay(WEBHOOK, method="POST", path="/eviction$")
    await sim.client.delete(MACHINES, machine, namespace="default")
    await sim.pass_time(5)
    assert len(sim.objects(PODS)) == 3
    return machine


def _pod(name: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 2,
            "containers": [{"name": "main", "image": "app"}],
        },
    }


def _deletions(sim: Simulation) -> int:
    return sim.server.requests.total(
        verb="delete", resource="pods", subresource="", agent="mcm", code=200
    )


def _vms(sim: Simulation) -> set[str]:
    return {name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES)}
