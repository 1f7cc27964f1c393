"""What a deployment does to its sets: take and let go, make, change, delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, final

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject, ObjectMeta, is_controlled_by
from mcm.client.errors import AlreadyExists, KubeError, NotFound
from mcm.controllers.deployment.fleet import by_age
from mcm.controllers.deployment.sets import set_change
from mcm.controllers.deployment.templates import same_template
from mcm.controllers.fanout import fan_out
from mcm.controllers.ownership import (
    adoption,
    children_of,
    claims_of,
    controller_reference,
    orphans_for,
    release,
)
from mcm.controllers.preconditions import for_this_object, for_this_version
from mcm.informers.store import Store
from mcm.informers.writer import Writer

if TYPE_CHECKING:
    from mcm.events import EventSink

EVENT_SCALED: Final = "ScalingMachineSet"

Errors = Sequence[KubeError]


class NameTaken(AlreadyExists):
    """The new set's name belongs to another object: the next try needs another hash."""


@final
class SetActions:
    """All writes to MachineSets that deployments make, and those to machines on their way."""

    def __init__(
        self,
        sets: Store[MachineSet],
        machines: Store[Machine],
        writer: Writer,
        events: EventSink,
    ) -> None:
        self._sets = sets
        self._machines = machines
        self._writer = writer
        self._events = events

    def owned(self, deployment: MachineDeployment) -> Sequence[MachineSet]:
        """Return the deployment's sets, those being deleted included, the oldest first."""
        meta = deployment.metadata
        children = children_of(self._sets, meta.uid)
        return by_age(claims_of(meta, deployment.spec.selector, children=children, orphans=()).kept)

    async def claim(self, deployment: MachineDeployment) -> Errors:
        """Adopt the orphans that the deployment selects, and release what it selects no more."""
        meta, selector = deployment.metadata, deployment.spec.selector
        claims = claims_of(
            meta,
            selector,
            children=children_of(self._sets, meta.uid),
            orphans=orphans_for(self._sets, selector, meta.namespace),
        )
        if claims.adopt:
            await self._prove_alive(meta)
        reference = controller_reference(MACHINE_DEPLOYMENTS, meta)
        changes = [
            *((s, adoption(s.metadata, reference)) for s in claims.adopt),
            *((s, release(s.metadata, meta.uid)) for s in claims.release),
        ]
        return await fan_out(lambda pair: self.patch(*pair), changes)

    async def create(self, deployment: MachineDeployment, wanted: MachineSet) -> MachineSet:
        """Create a set. One that exists already and is what was wanted is returned instead.

        Raises NameTaken if the name belongs to something else.
        """
        meta = wanted.metadata
        try:
            made = await self._writer.create(MACHINE_SETS, wanted, namespace=meta.namespace)
        except AlreadyExists as error:
            present = self._sets.get(meta.key)
            if present is None:
                raise  # the store will know before the next try
            if not self._is_as_wanted(present, deployment):
                raise NameTaken(error.code, error.reason, error.message) from error
            return present
        if made.spec.replicas > 0:
            self._tell_of_size(deployment, made, before=0)
        return made

    def _is_as_wanted(self, present: MachineSet, deployment: MachineDeployment) -> bool:
        return (
            present.metadata.deletion_timestamp is None
            and is_controlled_by(present.metadata, deployment.metadata.uid)
            and same_template(present.spec.template, deployment.spec.template)
        )

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

    async def delete(self, sets: Iterable[MachineSet], *, unchanged: bool = False) -> Errors:
        """Delete sets that are not being deleted yet; with ``unchanged`` only as they were seen."""

        async def delete_one(machine_set: MachineSet) -> None:
            meta = machine_set.metadata
            try:
                await self._writer.delete(
                    MACHINE_SETS,
                    meta.name,
                    namespace=meta.namespace,
                    uid=meta.uid,
                    resource_version=meta.resource_version if unchanged else "",
                )
            except NotFound:
                return

        return await fan_out(delete_one, (s for s in sets if s.metadata.deletion_timestamp is None))

    async def patch_machines(self, changes: Iterable[tuple[Machine, JSONObject]]) -> Errors:
        """Patch machines, each of which may be gone by now."""

        async def patch_one(pair: tuple[Machine, JSONObject]) -> None:
            meta, change = pair[0].metadata, pair[1]
            try:
                await self._writer.patch(
                    MACHINES, meta.name, for_this_object(meta, change), namespace=meta.namespace
                )
            except NotFound:
                return

        return await fan_out(patch_one, changes)

    def machines_of(self, machine_set: MachineSet) -> Sequence[Machine]:
        return children_of(self._machines, machine_set.metadata.uid)

    def machine_among(self, name: str, sets: Iterable[MachineSet]) -> Machine | None:
        """Return the machine ``name`` if one of ``sets`` owns it."""
        for machine_set in sets:
            machine = self._machines.get(f"{machine_set.metadata.namespace}/{name}")
            if machine and is_controlled_by(machine.metadata, machine_set.metadata.uid):
                return machine
        return None

    async def _prove_alive(self, owner: ObjectMeta) -> None:
        """Make sure the deployment was not deleted meanwhile, by a patch that changes nothing:
        what a dead owner adopts, the garbage collector deletes. Raises Conflict or NotFound."""
        await self._writer.patch(
            MACHINE_DEPLOYMENTS, owner.name, for_this_version(owner, {}), namespace=owner.namespace
        )

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
