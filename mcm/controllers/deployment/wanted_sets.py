"""The sets as a decision wants them; what is written is the difference to what they are."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mcm.api.machine import MachineSet
from mcm.api.names import ANNOTATION_PREFER_NO_SCHEDULE, LABEL_VALUE_TRUE
from mcm.controllers.deployment.new_set import brought_up, memory_of
from mcm.controllers.deployment.strategy import Decision
from mcm.controllers.deployment.world import World


def wanted_sets(
    world: World, decision: Decision, *, marking: bool
) -> Iterator[tuple[MachineSet, MachineSet]]:
    """Yield each set that can be changed with what it should be, the new one first.

    One write thus brings a set its size, its memory of it, and all that follows its deployment.
    ``marking``: nodes of old sets get a taint, and the sets are to say so beforehand.
    """
    living = [s for s in world.sets if s.metadata.deletion_timestamp is None]
    for present in sorted(living, key=lambda s: s is not world.new):
        wanted = _sized(present, world, decision)
        if present is world.new:
            wanted = brought_up(wanted, world.deployment, world.old)
        elif marking and world.new and world.machines[present.metadata.uid]:
            wanted = _annotated(wanted, {ANNOTATION_PREFER_NO_SCHEDULE: LABEL_VALUE_TRUE})
        yield present, wanted


def without_mark(machine_set: MachineSet) -> MachineSet:
    """Return the set without word of a taint on its nodes."""
    annotations = machine_set.metadata.annotations
    kept = {k: v for k, v in annotations.items() if k != ANNOTATION_PREFER_NO_SCHEDULE}
    return _with_annotations(machine_set, kept)


def _sized(present: MachineSet, world: World, decision: Decision) -> MachineSet:
    """Give a set its size. One in use, or about to leave use, remembers for what it was scaled."""
    replicas = decision.targets.get(present.metadata.uid, present.spec.replicas)
    if replicas == 0 and present.spec.replicas == 0:
        return present
    sized = msgspec.structs.replace(
        present, spec=msgspec.structs.replace(present.spec, replicas=replicas)
    )
    return _annotated(sized, dict(memory_of(world.limits)))


def _annotated(machine_set: MachineSet, more: dict[str, str]) -> MachineSet:
    return _with_annotations(machine_set, {**machine_set.metadata.annotations, **more})


def _with_annotations(machine_set: MachineSet, annotations: dict[str, str]) -> MachineSet:
    metadata = msgspec.structs.replace(machine_set.metadata, annotations=annotations)
    return msgspec.structs.replace(machine_set, metadata=metadata)
