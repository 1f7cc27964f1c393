"""Node agents that update machines in place, and a deployment that asks them to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, MachineDeployment
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_UPDATE_FAILED_REASON,
    ANNOTATION_UPDATE_TO_SET,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SCALE_UP_DISABLED,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    TAINT_PREFER_NO_SCHEDULE,
)
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of, phase_of

MARKS = (LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT)


class Agents:
    """The agents of all Nodes. They look at their Node every few seconds, and know nothing else.

    ``takes`` seconds is their work. Those of ``failing`` Nodes report a failure.
    """

    def __init__(self, sim: Simulation, *, takes: float = 20.0) -> None:
        self._sim = sim
        self._takes = takes
        self.failing: dict[str, str] = {}
        self.silent: set[str] = set()
        self.worked: Counter[str] = Counter()
        self._begun: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            for stored in self._sim.objects(NODES):
                if _asks_an_agent(stored):
                    await self._tend(name_of(stored))
            await self._sim.clock.sleep(2)

    async def _tend(self, name: str) -> None:
        node = await self._sim.client.get(NODES, name)
        marks, now = marks_of(node), self._sim.clock.monotonic()
        if marks.stage is not Stage.READY or marks.result is not None or name in self.silent:
            self._begun.pop(name, None)
            return
        if now - self._begun.setdefault(name, now) < self._takes:
            return
        self.worked[name] += 1
        reason = self.failing.get(name)
        metadata: JSONObject = {
            "labels": {LABEL_UPDATE_RESULT: "failed" if reason else "successful"}
        }
        if reason:
            metadata["annotations"] = {ANNOTATION_UPDATE_FAILED_REASON: reason}
        await self._sim.client.patch(NODES, name, {"metadata": metadata})


def _asks_an_agent(node: JSONObject) -> bool:
    conditions = _dict(node, "status").get("conditions")
    return isinstance(conditions, list) and any(c.get("reason") == Stage.READY for c in conditions)


class InPlaceFleet:
    """A deployment of a simulation, and what must hold of it after every change of a machine.

    ``floor`` machines must serve, once as many have; no more than ``ceiling`` may exist.
    """

    def __init__(self, sim: Simulation, replicas: int) -> None:
        self.sim = sim
        self.replicas = replicas
        self.floor = 0
        self.ceiling = 10**6
        self.least_seen = 10**6
        self.most_seen = 0
        self.violations: list[str] = []
        sim.on_change(MACHINES, self._look)

    async def begin(self, *, surge: int | str, unavailable: int | str, how: str = "Auto") -> None:
        await self.sim.apply(samples.load())
        block: JSONObject = {
            "maxSurge": surge,
            "maxUnavailable": unavailable,
            "orchestrationType": how,
        }
        strategy: JSONObject = {
            "type": "InPlaceUpdate",
            "rollingUpdate": None,
            "inPlaceUpdate": block,
        }
        await self.change(replicas=self.replicas, strategy=strategy)
        await self.sim.until(lambda: self.sim.running() == self.replicas, within=300)
        await self.sim.pass_time(5)

    async def change(self, **spec: object) -> None:
        await self.sim.client.patch(
            MACHINE_DEPLOYMENTS, "sample", {"spec": spec}, namespace="default"
        )

    async def update(self, version: str) -> None:
        """Ask for machines of another version: only a label of the template tells."""
        labels: JSONObject = {"version": version}
        await self.change(template={"metadata": {"labels": labels}})

    def keep_within(self, *, floor: int, ceiling: int) -> None:
        self.floor, self.ceiling = floor, ceiling
        self.least_seen, self.most_seen = 10**6, 0

    def _look(self) -> None:
        machines = self.sim.objects(MACHINES)
        cordoned = {
            name_of(n) for n in self.sim.objects(NODES) if _dict(n, "spec").get("unschedulable")
        }
        serving = sum(
            phase_of(m) == "Running" and _labels(m).get("node") not in cordoned for m in machines
        )
        self.least_seen = min(self.least_seen, serving)
        self.most_seen = max(self.most_seen, len(machines))
        owned = [tuple(_owners(m)) for m in machines]
        if any(len(owners) != 1 for owners in owned):
            self.violations.append(f"owners: {owned}")
        if len(machines) > self.ceiling or serving < self.floor:
            self.violations.append(f"{serving} of {len(machines)} serve\n{self.sim.describe()}")

    # ---- looking -------------------------------------------------------------------------------

    def names(self) -> set[str]:
        return {name_of(m) for m in self.sim.objects(MACHINES)}

    def nodes(self) -> list[str]:
        return sorted(name_of(node) for node in self.sim.objects(NODES))

    def is_of_version(self, node: str, version: str) -> bool:
        """Tell whether the machine of that Node is."""
        machine = next(m for m in self.sim.objects(MACHINES) if _labels(m).get("node") == node)
        return _labels(machine).get("version") == version

    def with_agents(self) -> list[str]:
        """The Nodes whose agents were asked, and have not answered."""
        return [
            name_of(node)
            for node in self.sim.objects(NODES)
            if _asks_an_agent(node) and LABEL_UPDATE_RESULT not in _labels(node)
        ]

    async def label(self, node: str, labels: dict[str, str | None]) -> None:
        await self.sim.client.patch(NODES, node, {"metadata": {"labels": labels}})

    def versions(self) -> Counter[str]:
        return Counter(_labels(m).get("version", "") for m in self.sim.objects(MACHINES))

    def is_whole(self, version: str) -> bool:
        everyone = self.versions() == {version: self.replicas}
        return everyone and self.sim.running() == self.replicas

    def sizes(self) -> dict[str, int]:
        return {
            name_of(s): int(str(_dict(s, "spec").get("replicas", 0)))
            for s in self.sim.objects(MACHINE_SETS)
        }

    async def progressing(self) -> tuple[str, str]:
        """Reason and message of the condition."""
        found: MachineDeployment = await self.sim.client.get(
            MACHINE_DEPLOYMENTS, "sample", namespace="default"
        )
        condition = next(c for c in found.status.conditions if c.type == "Progressing")
        return condition.reason, condition.message

    def leftovers(self) -> list[str]:
        return leftovers(self.sim)


def leftovers(sim: Simulation) -> list[str]:
    """What of an update is left on objects though it is over."""
    found = []
    for node in sim.objects(NODES):
        marks = [label for label in MARKS if label in _labels(node)]
        annotations = _dict(_dict(node, "metadata"), "annotations")
        for key in (
            ANNOTATION_CORDONED_BY_MCM,
            ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
            ANNOTATION_UPDATE_FAILED_REASON,
            ANNOTATION_UPDATE_TO_SET,
        ):
            marks += [key] if key in annotations else []
        spec = _dict(node, "spec")
        marks += ["cordon"] if spec.get("unschedulable") else []
        taints = spec.get("taints")
        for taint in taints if isinstance(taints, list) else ():
            marks += ["taint"] if taint.get("key") == TAINT_PREFER_NO_SCHEDULE else []
        found += [f"{name_of(node)}: {mark}" for mark in marks]
    for machine in sim.objects(MACHINES):
        found += [f"{name_of(machine)}: pin"] if LABEL_UPDATE_RESULT in _labels(machine) else []
    for machine_set in sim.objects(MACHINE_SETS):
        locked = LABEL_SCALE_UP_DISABLED in _labels(machine_set)
        if locked and _dict(machine_set, "spec").get("replicas"):
            found.append(f"{name_of(machine_set)}: locked")
    return found


def _dict(obj: JSONObject, key: str) -> JSONObject:
    found = obj.get(key)
    return found if isinstance(found, dict) else {}


def _labels(obj: JSONObject) -> dict[str, str]:
    labels = _dict(obj, "metadata").get("labels")
    return labels if isinstance(labels, dict) else {}


def _owners(obj: JSONObject) -> Iterable[str]:
    references = _dict(obj, "metadata").get("ownerReferences")
    if not isinstance(references, list):
        return []
    return [reference["uid"] for reference in references if reference.get("controller")]
