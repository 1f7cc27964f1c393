"""How a history is to end: what is still missing, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_FREEZE,
    LABEL_SCALE_UP_DISABLED,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    TAINT_PREFER_NO_SCHEDULE,
    TAINT_PRESERVED,
)
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.simulation.harness import Simulation, name_of, phase_of

_LABELS: Final = (
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    LABEL_FREEZE,
)
_ANNOTATIONS: Final = (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
)
_TAINTS: Final = (TAINT_PREFER_NO_SCHEDULE, TAINT_PRESERVED)


def missing(sim: Simulation, declared: Mapping[str, Any], *, in_place: bool) -> list[str]:
    """Return what is not as it is declared; empty at the end of a history.

    ``in_place``: machines may have been updated in place.
    """
    return [
        # Updated in place, a machine keeps the class it was made with.
        *_of_machines(sim, declared["replicas"], "" if in_place else declared["class"]),
        *_of_sets(sim, declared["replicas"]),
        *_of_deployment(sim, declared["replicas"]),
        *_left_over(sim),
    ]


def _of_machines(sim: Simulation, replicas: int, klass: str) -> Iterator[str]:
    machines: list[Any] = [*sim.objects(MACHINES)]
    names = {name_of(m) for m in machines}
    if len(machines) != replicas:
        yield f"{len(machines)} machines, not {replicas}"
    for machine in machines:
        if phase_of(machine) != "Running":
            yield f"{name_of(machine)} is {phase_of(machine) or 'new'}"
        if klass and machine["spec"]["class"]["name"] != klass:
            yield f"{name_of(machine)} is of another class"
    for resource in (VIRTUAL_MACHINES, NODES):
        if {name_of(o) for o in sim.objects(resource)} != names:
            yield f"not one {resource.kind} for each machine"


def _of_sets(sim: Simulation, replicas: int) -> Iterator[str]:
    sets: list[Any] = [*sim.objects(MACHINE_SETS)]
    sizes = sorted(s["spec"].get("replicas", 0) for s in sets)
    if [size for size in sizes if size] != ([replicas] if replicas else []):
        yield f"sets of {sizes}, not one of {replicas}"
    machines: list[Any] = [*sim.objects(MACHINES)]
    owners = {o["uid"] for m in machines for o in m["metadata"].get("ownerReferences", ())}
    if len(owners) > 1 or any("ownerReferences" not in m["metadata"] for m in machines):
        yield "machines of several sets, or of none"
    for machine_set in sets:
        in_use = machine_set["spec"].get("replicas", 0) > 0
        if in_use and LABEL_SCALE_UP_DISABLED in machine_set["metadata"].get("labels", {}):
            yield f"{name_of(machine_set)} may not grow"
        status, size = machine_set.get("status", {}), machine_set["spec"].get("replicas", 0)
        counts = [status.get(f"{n}eplicas") for n in ("r", "readyR", "availableR")]
        if counts != [size, size, size]:
            yield f"{name_of(machine_set)} counts {counts}, not {size}"
        if status.get("machineSetCondition"):
            yield f"{name_of(machine_set)} says {status['machineSetCondition']}"


def _of_deployment(sim: Simulation, replicas: int) -> Iterator[str]:
    (deployment,) = (d for d in sim.objects(MACHINE_DEPLOYMENTS) if name_of(d) == "sample")
    status: Any = deployment.get("status", {})
    for count in ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"):
        if status.get(count) != replicas:
            yield f"status.{count} is {status.get(count)}, not {replicas}"
    if status.get("unavailableReplicas") or status.get("failedMachines"):
        yield f"status tells of trouble: {status}"
    said = {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", ())}
    if said.pop("Available", ("",))[0] != "True":
        yield "not Available"
    if said.pop("Progressing", None) != ("True", "NewMachineSetAvailable"):
        yield f"Progressing says {status.get('conditions')}"
    if troubles := {kind: c for kind, c in said.items() if c[0] == "True" and kind not in _MEANT}:
        yield f"the deployment says {troubles}"


_MEANT: Final = frozenset({"StrategyAdjusted", "RolledBack"})


def _left_over(sim: Simulation) -> Iterator[str]:
    for resource in (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, NODES):
        for obj in sim.objects(resource):
            found: Any = obj
            labels, annotations = (found["metadata"].get(k, {}) for k in ("labels", "annotations"))
            left = [k for k in _LABELS if k in labels]
            left += [k for k in _ANNOTATIONS if k in annotations]
            if resource is NODES:
                spec = found.get("spec", {})
                left += [t["key"] for t in spec.get("taints", ()) if t["key"] in _TAINTS]
                left += ["a cordon"] if spec.get("unschedulable") else []
            if left:
                yield f"{resource.kind} {name_of(obj)} bears {left}"
