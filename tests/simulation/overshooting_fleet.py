"""A fleet whose machines can be too many: a user's view of it, and acts of users and others.

Our own controllers make none too many, so a second manager that does is played here, and a drain or
a cloud that lets machines leave slowly by a finalizer of somebody else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject
from mcm.events.wire import CORE_EVENTS
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of

UNFREEZE = "safety.machine.sapcloud.io/unfreeze"
FROZE, UNFROZE = "FrozeMachineSet", "UnfrozeMachineSet"
HOLD = "example.com/hold"
ROLLING: JSONObject = {
    "type": "RollingUpdate",
    "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
}
RECREATE: JSONObject = {"type": "Recreate"}
IN_PLACE: JSONObject = {
    "type": "InPlaceUpdate",
    "inPlaceUpdate": {"maxSurge": 1, "maxUnavailable": 1, "orchestrationType": "Auto"},
}


@dataclass
class Fleet:
    """A user's view of the fleet, and the user's acts."""

    sim: Simulation
    made_by_others: int = 0

    async def begin(self, replicas: int, strategy: JSONObject = ROLLING) -> None:
        *rest, deployment = samples.load()
        await self.sim.apply(rest)
        await self.sim.apply([_with_spec(deployment, replicas=replicas, strategy=strategy)])
        await self.sim.until(lambda: self.sim.running() == replicas, within=120)
        await self.sim.pass_time(30)

    async def begin_alone(self, replicas: int) -> None:
        """The same without a deployment."""
        *rest, deployment = samples.load()
        spec: Any = deployment["spec"]
        await self.sim.apply(rest)
        body: JSONObject = {
            "apiVersion": deployment["apiVersion"],
            "kind": "MachineSet",
            "metadata": {"name": "alone", "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": spec["selector"],
                "template": spec["template"],
            },
        }
        await self.sim.apply([body])
        await self.sim.until(lambda: self.sim.running() == replicas, within=120)
        await self.sim.pass_time(30)

    # ---- what is seen -----------------------------------------------------------------------

    def sets(self) -> list[MachineSet]:
        return [msgspec.convert(s, MachineSet) for s in self.sim.objects(MACHINE_SETS)]

    @property
    def set(self) -> MachineSet:
        (only,) = self.sets()
        return only

    @property
    def deployment(self) -> MachineDeployment:
        (only,) = self.sim.objects(MACHINE_DEPLOYMENTS)
        return msgspec.convert(only, MachineDeployment)

    def machines(self) -> list[Machine]:
        found = [msgspec.convert(m, Machine) for m in self.sim.objects(MACHINES)]
        return sorted(found, key=lambda m: m.metadata.name)

    def staying(self) -> int:
        return sum(m.metadata.deletion_timestamp is None for m in self.machines())

    def frozen(self) -> bool:
        """Whether all that shows a freeze shows it, on the only set and the deployment."""
        shown = [shows(self.set), *([shows(self.deployment)] if self._has_deployment else [])]
        return shown == [(True, True)] * len(shown)

    def free(self) -> bool:
        """Whether nothing shows a freeze, on no object."""
        shown = [shows(s) for s in self.sets()]
        shown += [shows(self.deployment)] if self._has_deployment else []
        return shown == [(False, False)] * len(shown)

    @property
    def _has_deployment(self) -> bool:
        return bool(self.sim.objects(MACHINE_DEPLOYMENTS))

    def told(self) -> Counter[str]:
        """How often each event of freezing was told, repetitions of one text included."""
        told: Counter[str] = Counter()
        for event in self.sim.objects(CORE_EVENTS):
            series: Any = event.get("series") or {}
            told[str(event["reason"])] += int(series.get("count", 1))
        return Counter({r: n for r, n in told.items() if "Froze" in r or "Unfroze" in r})

    def message(self) -> str:
        (found,) = [c.message for c in self.set.status.conditions if c.type == "Frozen"]
        return found

    # ---- what is done -----------------------------------------------------------------------

    async def scale(self, replicas: int) -> None:
        if self._has_deployment:
            await self.patch_deployment({"spec": {"replicas": replicas}})
        else:
            await self.patch_set({"spec": {"replicas": replicas}})

    async def patch_deployment(self, change: JSONObject) -> None:
        await self.sim.client.patch(MACHINE_DEPLOYMENTS, "sample", change, namespace="default")

    async def patch_set(self, change: JSONObject, name: str = "") -> None:
        await self.sim.client.patch(
            MACHINE_SETS, name or self.set.metadata.name, change, namespace="default"
        )

    async def make_too_many(self, count: int) -> None:
        """Somebody else makes machines for the set."""
        owner = self.set
        ref: JSONObject = {
            "apiVersion": "machine.sapcloud.io/v1alpha1",
            "kind": "MachineSet",
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        labels = dict((owner.spec.selector or _none()).match_labels)
        for _ in range(count):
            self.made_by_others += 1
            body: JSONObject = {
                "metadata": {
                    "name": f"extra-{self.made_by_others}",
                    "labels": labels,
                    "ownerReferences": [ref],
                    "finalizers": [HOLD],
                },
                "spec": owner.spec.template.spec,
            }
            await self.sim.client.create(MACHINES, body, namespace="default")

    async def hold(self) -> None:
        """Let all machines that there are leave as late as somebody else wants."""
        for machine in self.machines():
            if HOLD in machine.metadata.finalizers or machine.metadata.deletion_timestamp:
                continue
            kept = [*machine.metadata.finalizers, HOLD]
            await self._machine(machine, {"metadata": {"finalizers": kept}})

    async def release(self, count: int | None = None) -> None:
        """Let ``count`` (or all) of the machines that leave be gone as far as we hold them."""
        held = [m for m in self.machines() if HOLD in m.metadata.finalizers]
        leaving = [m for m in held if m.metadata.deletion_timestamp is not None]
        for machine in leaving[:count]:
            await self.unhold(machine)

    async def unhold(self, machine: Machine) -> None:
        kept = [f for f in machine.metadata.finalizers if f != HOLD]
        await self._machine(machine, {"metadata": {"finalizers": kept}})

    async def delete_machines(self, count: int) -> None:
        living = [m for m in self.machines() if m.metadata.deletion_timestamp is None]
        for machine in living[:count]:
            await self.sim.client.delete(MACHINES, machine.metadata.name, namespace="default")

    async def _machine(self, machine: Machine, change: JSONObject) -> None:
        name = machine.metadata.name
        await self.sim.client.patch(MACHINES, name, change, namespace="default")


def _none() -> Any:
    raise AssertionError("a set without a selector")


def _with_spec(deployment: JSONObject, **spec: object) -> JSONObject:
    present: Any = deployment["spec"]
    return {**deployment, "spec": {**present, **spec}}


def shows(obj: MachineSet | MachineDeployment) -> tuple[bool, bool]:
    """Label, condition."""
    conditions: Iterable[Any] = obj.status.conditions
    said = any(c.type == "Frozen" and c.status == "True" for c in conditions)
    return obj.metadata.labels.get("freeze") == "True", said


class OneSet(Fleet):
    """The fleet, of which one set is meant."""

    def __init__(self, sim: Simulation, name: str) -> None:
        super().__init__(sim)
        self._name = name

    @property
    def set(self) -> MachineSet:
        (only,) = [s for s in self.sets() if s.metadata.name == self._name]
        return only


def progress(fleet: Fleet) -> str:
    found = [c.reason for c in fleet.deployment.status.conditions if c.type == "Progressing"]
    return found[0] if found else ""


async def roll(fleet: Fleet) -> None:
    template: JSONObject = {"spec": {"class": {"name": "large"}}}
    await fleet.patch_deployment({"spec": {"template": template}})


def versions(sim: Simulation) -> dict[str, object]:
    found: dict[str, object] = {}
    for resource in (MACHINE_DEPLOYMENTS, MACHINE_SETS):
        for obj in sim.objects(resource):
            meta: Any = obj["metadata"]
            found[f"{resource.plural}/{name_of(obj)}"] = meta["resourceVersion"]
    return found
