"""Everything that ever happened to machines, change by change, and what a flow leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import Resource, T
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_FAILING_SINCE,
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PREFER_NO_SCHEDULE,
    ANNOTATION_PRESERVE,
    ANNOTATION_PRIORITY,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_STARTUP_FAILURES,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
    ANNOTATION_UPDATE_FAILED_REASON,
    ANNOTATION_UPDATE_TO_SET,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_FREEZE,
    LABEL_SCALE_UP_DISABLED,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    TAINT_PREFER_NO_SCHEDULE,
    TAINT_PRESERVED,
)
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox.apiserver.store import Change, ChangeType
from mcm.simulation.harness import Simulation, name_of, phase_of

LABELS = (
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    LABEL_FREEZE,
)
ANNOTATIONS = (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_FAILING_SINCE,
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_STARTUP_FAILURES,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
    ANNOTATION_UPDATE_FAILED_REASON,
    ANNOTATION_UPDATE_TO_SET,
)
TAINTS = (TAINT_PREFER_NO_SCHEDULE, TAINT_PRESERVED)


@final
class MachineLedger:
    """Which machines were made and went, and what broke a promise.

    There are never more than ``most`` machines, and never fewer serving than ``fewest``. ``made``
    and ``gone`` (from the moment its deletion is asked for) say of each by its UID the version it
    was of, since :meth:`begin`. No VM is made twice.
    """

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.most, self.fewest = 10**6, 0
        self.made: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self.broken: list[str] = []
        self.rule: Callable[[], str] = lambda: ""
        self._vms: set[str] = set()
        self._subscribe(MACHINES, self._see_machine)
        self._subscribe(VIRTUAL_MACHINES, self._see_vm)

    def begin(self, *, most: int, fewest: int, rule: Callable[[], str] = lambda: "") -> None:
        """Promise anew; what was seen is forgotten. ``rule`` says what else is broken."""
        self.most, self.fewest, self.rule = most, fewest, rule
        self.made, self.gone = {}, {}

    def _subscribe(self, resource: Resource[T], see: Callable[[Change], None]) -> None:
        info = self._sim.server.registry.find(resource.group, resource.version, resource.plural)
        assert info is not None
        self._sim.server.store.subscribe(see, info.storage)

    def _see_machine(self, change: Change) -> None:
        meta: Any = change.stored.metadata
        uid, version = str(meta["uid"]), str(meta.get("labels", {}).get("version", ""))
        if change.type is ChangeType.ADDED:
            self.made[uid] = version
        if change.type is ChangeType.DELETED or "deletionTimestamp" in meta:
            self.gone.setdefault(uid, version)
        there, serving = len(self._sim.objects(MACHINES)), len(serving_machines(self._sim))
        if there > self.most or serving < self.fewest:
            self.broken.append(f"{serving} of {there} serve: {self._sim.describe()}")
        if problem := self.rule():
            self.broken.append(problem)

    @property
    def vms(self) -> int:
        """How many there ever were."""
        return len(self._vms)

    def _see_vm(self, change: Change) -> None:
        if change.type is ChangeType.ADDED:
            if change.stored.name in self._vms:
                self.broken.append(f"VM {change.stored.name} was made twice")
            self._vms.add(change.stored.name)


def serving_machines(sim: Simulation) -> list[str]:
    """Those that run, stay, and whose Nodes take pods."""
    cordoned = {name_of(n) for n in found(sim, NODES) if n["spec"].get("unschedulable")}
    return [
        name_of(m)
        for m in found(sim, MACHINES)
        if phase_of(m) == "Running"
        and "deletionTimestamp" not in m["metadata"]
        and labels_of(m).get("node") not in cordoned
    ]


def leftovers(sim: Simulation) -> list[str]:
    """What is left on objects of something that is over."""
    marks: list[str] = []
    for resource in (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, NODES):
        for obj in found(sim, resource):
            marks += [f"{resource.plural}/{name_of(obj)}: {mark}" for mark in _marks(obj)]
    for one in found(sim, MACHINE_SETS):  # those without machines may bear them
        if one["spec"].get("replicas"):
            locked, marked = LABEL_SCALE_UP_DISABLED, ANNOTATION_PREFER_NO_SCHEDULE
            marks += [f"{name_of(one)}: {locked}"] if locked in labels_of(one) else []
            marks += [f"{name_of(one)}: {marked}"] if marked in annotations_of(one) else []
    return marks


def _marks(obj: dict[str, Any]) -> Iterator[str]:
    yield from (label for label in LABELS if label in labels_of(obj))
    annotations = annotations_of(obj)
    yield from (key for key in ANNOTATIONS if key in annotations)
    if annotations.get(ANNOTATION_PRIORITY, "3") != "3":
        yield ANNOTATION_PRIORITY
    spec = obj["spec"]
    yield from (t["key"] for t in spec.get("taints") or () if t["key"] in TAINTS)
    if spec.get("unschedulable"):
        yield "cordon"
    if "rollbackTo" in spec:
        yield "rollbackTo"


def found(sim: Simulation, resource: Resource[T]) -> list[dict[str, Any]]:
    return sim.objects(resource)


def labels_of(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
