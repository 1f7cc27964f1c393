"""A node dies with a database's volume on it: the volume comes free, and only then the VM goes."""

from __future__ import annotations

from typing import cast

import pytest

from mcm.api.core import NODES, PODS, VOLUME_ATTACHMENTS
from mcm.api.meta import JSONObject
from mcm.events import CORE_EVENTS, EVENTS
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.thoroughness import part_of
from tests.unit.world.manifests import storage_class, workload

MINUTES = 60.0
DETACH_TIMEOUT = 120.0


def database(**storage: str) -> list[JSONObject]:
    """One pod, one volume of its own that one node at a time may have."""
    made = workload("StatefulSet", name="db", replicas=1, serviceName="db")
    claim: JSONObject = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disk",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    cast("JSONObject", made["spec"])["volumeClaimTemplates"] = [claim]
    binding = "WaitForFirstConsumer"
    return [storage_class("disk", binding=binding, **storage), made]


def fleet() -> list[JSONObject]:
    found = {(str(o["kind"]), name_of(o)): o for o in samples.load()}
    deployment = found["MachineDeployment", "sample"]
    spec = {**cast("JSONObject", deployment["spec"]), "replicas": 2}
    template = cast("JSONObject", spec["template"])
    patient = {**cast("JSONObject", template["spec"]), "drainTimeout": "1h"}
    spec["template"] = {**template, "spec": patient}
    return [
        found["Secret", "sample-secret"],
        found["MachineClass", "small"],
        {**deployment, "spec": spec},
    ]


class Scene:
    """Two machines, a database on one of them, and what became of it when."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.victim = ""

    async def prepare(self, **storage: str) -> None:
        await self.sim.apply([*fleet(), *database(**storage)])
        await self.sim.until(lambda: self.place() != "", within=2 * MINUTES, what="a database")
        self.victim = self.place()

    def place(self) -> str:
        """The node on which the database runs; empty: it does not."""
        for pod in self.sim.objects(PODS):
            status, spec = cast("JSONObject", pod["status"]), cast("JSONObject", pod["spec"])
            if name_of(pod) == "db-0" and status.get("phase") == "Running":
                return str(spec["nodeName"])
        return ""

    async def die(self) -> None:
        """Switch the VM off; return once its node is given up, five minutes after its last word."""
        off: JSONObject = {"spec": {"powerState": "Off"}}
        await self.sim.client.patch(VIRTUAL_MACHINES, self.victim, off, namespace="default")
        passed = await self.sim.until(self.is_given_up, within=15 * MINUTES, what="a taint")
        assert passed > 5 * MINUTES

    def is_given_up(self) -> bool:
        return any(
            name_of(node) == self.victim and "out-of-service" in str(node["spec"])
            for node in self.sim.objects(NODES)
        )

    def has_vm(self) -> bool:
        return any(name_of(vm) == self.victim for vm in self.sim.objects(VIRTUAL_MACHINES))

    def is_attached(self) -> bool:
        return any(
            cast("JSONObject", a["spec"])["nodeName"] == self.victim
            for a in self.sim.objects(VOLUME_ATTACHMENTS)
        )

    def told(self) -> set[str]:
        found = (*self.sim.objects(EVENTS), *self.sim.objects(CORE_EVENTS))
        return {str(event["reason"]) for event in found}


def test_the_volume_is_free_within_seconds_and_the_vm_goes_after_it() -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            scene = Scene(sim)
            await scene.prepare(detachSeconds="5")
            held_at_the_end: list[bool] = []

            def look() -> None:
                if not held_at_the_end and not scene.has_vm():
                    held_at_the_end.append(scene.is_attached())

            await scene.die()
            sim.on_change(VIRTUAL_MACHINES, look)
            took = await sim.until(lambda: not scene.has_vm(), within=MINUTES)
            assert took < 20, "not the six minutes after which volumes are taken from the dead"
            assert held_at_the_end == [False]
            await sim.until(lambda: scene.place() not in ("", scene.victim), within=MINUTES)
            assert "OutOfService" in scene.told()
            assert "VolumesLeftAttached" not in scene.told()

    run_virtual(main)


@pytest.mark.parametrize("crash_after", part_of([60.0, None], one_in=2))
def test_a_volume_that_is_never_detached_holds_the_vm_for_the_detach_timeout(
    crash_after: float | None,
) -> None:
    async def main() -> None:
        async with Simulation(seed=4) as sim:
            scene = Scene(sim)
            await scene.prepare(detachSeconds="never")
            await scene.die()
            passed = 0.0
            if crash_after is not None:
                await sim.pass_time(crash_after)
                await sim.crash_manager()
                sim.start_manager()
                passed = crash_after
            passed += await sim.until(lambda: not scene.has_vm(), within=5 * MINUTES)
            assert DETACH_TIMEOUT - 5 <= passed <= DETACH_TIMEOUT + 30
            assert "VolumesLeftAttached" in scene.told()

    run_virtual(main)
