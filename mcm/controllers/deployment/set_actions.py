"""What a deployment does to its sets: take and let go, make, change, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.client.errors import KubeError
from mcm.client.verbs import ObjectReader, ObjectWriter
from mcm.controllers.deployment.fleet import by_age
from mcm.controllers.deployment.ownership import OWNERSHIP
from mcm.controllers.deployment.sets import set_change
from mcm.controllers.deployment.templates import same_template
from mcm.controllers.fanout import fan_out, patch_each
from mcm.controllers.owning import Claimer, children_of, create_or_find, delete_children
from mcm.controllers.preconditions import for_this_version
from mcm.events import EventSink
from mcm.informers.store import Store

EVENT_SCALED: Final = "ScalingMachineSet"

Errors = Sequence[KubeError]


@final
class SetActions:
    """All writes to MachineSets that deployments make, and those to machines on their way."""

    def __init__(
        self,
        sets: Store[MachineSet],
        machines: Store[Machine],
        reader: ObjectReader,
        writer: ObjectWriter,
        events: EventSink,
    ) -> None:
        self._sets = sets
        self._machines = machines
        self._writer = writer
        self._events = events
        self._claimer = Claimer(OWNERSHIP, sets, reader=reader, writer=writer)

    def owned(self, deployment: MachineDeployment) -> Sequence[MachineSet]:
        """Return the deployment's sets, those being deleted included, the oldest first."""
        return by_age(self._claimer.owned(deployment))

    async def claim(self, deployment: MachineDeployment) -> Errors:
        """Adopt the orphans that the deployment selects, and release what it selects no more."""
        return await self._claimer.claim(deployment)

    async def create(self, deployment: MachineDeployment, wanted: MachineSet) -> None:
        """Create a set, unless one that serves the same template exists already.

        Raises NameTaken if the name belongs to something else: the next try needs another hash.
        """
        made, is_new = await create_or_find(
            self._writer,
            self._sets,
            MACHINE_SETS,
            wanted.metadata.name,
            wanted,
            owner=deployment.metadata,
            serves=lambda s: same_template(s.spec.template, deployment.spec.template),
        )
        if is_new and made.spec.replicas > 0:
            self._tell_of_size(deployment, made, before=0)

    async def change(
        self, deployment: MachineDeployment, present: MachineSet, wanted: MachineSet
    ) -> None:
        """Write what distinguishes ``wanted`` from ``present``; nothing if nothing does."""
        difference = set_change(present, wanted)
        if not difference:
            return
        await self.patch(present, difference)
        if wanted.spec.replicas != present.spec.replicas:
            self._tell_of_size(deployment, wanted, before=present.spec.replicas)

    async def patch(self, present: MachineSet, change: JSONObject) -> None:
        """Apply ``change`` if the set still wants what it did when the decision was made.

        Its status may have been written since: that changes the version, and not the decision.
        """
        meta = present.metadata
        latest = self._sets.get(meta.key)
        if latest is not None and _asks_the_same(latest.metadata, meta):
            meta = latest.metadata
        await self._writer.patch(
            MACHINE_SETS, meta.name, for_this_version(meta, change), namespace=meta.namespace
        )

    async def try_patch(self, present: MachineSet, change: JSONObject) -> Errors:
        """Apply ``change``; return what went wrong."""
        return await fan_out(lambda pair: self.patch(*pair), [(present, change)])

    async def delete(self, sets: Iterable[MachineSet], *, unchanged: bool = False) -> Errors:
        """Delete sets that are not being deleted yet; with ``unchanged`` only as they were seen."""
        return await delete_children(self._writer, MACHINE_SETS, sets, unchanged=unchanged)

    async def patch_machines(self, changes: Iterable[tuple[Machine, JSONObject]]) -> Errors:
        """Patch machines, each of which may be gone by now."""
        pairs = ((machine.metadata, change) for machine, change in changes)
        return await patch_each(self._writer, MACHINES, pairs)

    def machines_of(self, machine_set: MachineSet) -> Sequence[Machine]:
        return children_of(self._machines, machine_set.metadata.uid)

    def finder_among(self, sets: Sequence[MachineSet]) -> Callable[[str], Machine | None]:
        """Return what finds a machine by name, if one of ``sets`` (of one namespace) owns it."""
        uids = {s.metadata.uid for s in sets}
        namespace = sets[0].metadata.namespace if sets else ""

        def find(name: str) -> Machine | None:
            machine = self._machines.get(f"{namespace}/{name}")
            owner = machine.metadata.controller_ref() if machine else None
            return machine if owner is not None and owner.uid in uids else None

        return find

    def _tell_of_size(
        self, deployment: MachineDeployment, machine_set: MachineSet, *, before: int
    ) -> None:
        size = machine_set.spec.replicas
        direction = "up" if size > before else "down"
        note = f"Scaled {direction} machine set {machine_set.metadata.name} to {size}"
        self._events.event(MACHINE_DEPLOYMENTS, deployment, "Normal", EVENT_SCALED, note)


def _asks_the_same(one: ObjectMeta, other: ObjectMeta) -> bool:
    return (
        one.uid == other.uid
        and one.generation == other.generation
        and one.annotations == other.annotations
        and one.labels == other.labels
        and one.owner_references == other.owner_references
        and one.deletion_timestamp == other.deletion_timestamp
    )
