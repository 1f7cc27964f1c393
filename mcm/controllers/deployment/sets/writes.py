"""The writes to a deployment's sets, and those to machines on their way between them.

What is written is the difference between what a set is and what it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, final

from mcm.api.codec import to_json_object
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import LABEL_MACHINE_TEMPLATE_HASH
from mcm.api.patches import explicit_zeros, merge_diff
from mcm.api.templates import labels_of
from mcm.client.errors import KubeError
from mcm.client.verbs import ObjectReader, ObjectWriter
from mcm.controllers.deployment.fleet import OWNERSHIP, DeploymentSnapshot, by_age
from mcm.controllers.deployment.sets.orphaned_machines import orphaned_machines
from mcm.controllers.deployment.sets.returning_machines import mark_of, undecided
from mcm.controllers.deployment.templates import same_template
from mcm.controllers.fanout import fan_out, patch_each
from mcm.controllers.owning import (
    Claimer,
    abandoned_for,
    children_of,
    create_or_find,
    delete_children,
    index_by_uid,
    is_orphaning,
    orphans_for,
)
from mcm.controllers.preconditions import for_this_version
from mcm.events import EventSink
from mcm.informers.store import Store

EVENT_SCALED: Final = "ScalingMachineSet"

Errors = Sequence[KubeError]


def set_change(present: MachineSet, wanted: MachineSet) -> JSONObject:
    """Return the merge patch from one set to the other, statuses aside; empty if they are equal."""
    before, after = to_json_object(present), to_json_object(wanted)
    before.pop("status", None)
    after.pop("status", None)
    return explicit_zeros(merge_diff(before, after))


@final
class SetActions:
    """All writes to MachineSets that deployments make, and those to machines on their way."""

    def __init__(
        self,
        deployments: Store[MachineDeployment],
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
        self._claimer = Claimer(OWNERSHIP, deployments, sets, reader=reader, writer=writer)
        index_by_uid(sets)

    def owned(self, deployment: MachineDeployment) -> Sequence[MachineSet]:
        """Return the deployment's sets, those being deleted included, the oldest first."""
        return by_age(self._claimer.owned(deployment))

    async def claim(self, deployment: MachineDeployment) -> Errors:
        """Adopt the orphans that the deployment selects, and release what it selects no more."""
        return await self._claimer.claim(deployment)

    def awaited(
        self, deployment: MachineDeployment, sets: Iterable[MachineSet], now: datetime
    ) -> Sequence[MachineSet]:
        """Return the sets of which it must be known what becomes of them before another is made."""
        own = undecided(deployment, sets, self.machines_of, now)
        return (*self._claimer.abandoned(deployment), *own)

    def mark_of_orphans(
        self, deployment: MachineDeployment, sets: Iterable[MachineSet]
    ) -> str | None:
        """Return the template hash of the machines that a new set shall adopt, if there are any."""
        selector, namespace = deployment.spec.selector, deployment.metadata.namespace
        machines = (
            *orphans_for(self._machines, selector, namespace),
            *abandoned_for(
                MACHINE_SETS.kind,
                selector,
                namespace,
                owners=self._sets,
                children=self._machines,
            ),
        )
        living = (s for s in sets if s.metadata.deletion_timestamp is None)
        taken = {labels_of(s.spec.template).get(LABEL_MACHINE_TEMPLATE_HASH, "") for s in living}
        return mark_of(deployment.spec.template, machines, taken=taken)

    def orphaned(self, snapshot: DeploymentSnapshot) -> Sequence[Machine] | None:
        """Return the machines that no set owns nor will adopt; None as long as a set gives up its
        own: it is not known yet which."""
        if any(map(is_orphaning, snapshot.sets)):
            return None
        return orphaned_machines(snapshot.deployment, self._sets, self._machines)

    async def create(self, deployment: MachineDeployment, wanted: MachineSet) -> None:
        """Create a set, unless one that serves the same template exists already.

        Raises NameTaken if the name belongs to something else: the next try needs another hash.
        """
        made, is_new = await create_or_find(
            self._writer,
            self._sets,
            MACHINE_SETS,
            wanted.metadata.name,
            _with_size(wanted),
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


def _with_size(machine_set: MachineSet) -> JSONObject:
    """Write the size also where it is 0, which tables would show as a blank otherwise."""
    body = to_json_object(machine_set)
    spec = body.get("spec")
    size: JSONObject = {"replicas": machine_set.spec.replicas}
    return {**body, "spec": {**(spec if isinstance(spec, dict) else {}), **size}}


def _asks_the_same(one: ObjectMeta, other: ObjectMeta) -> bool:
    return (
        one.uid == other.uid
        and one.generation == other.generation
        and one.annotations == other.annotations
        and one.labels == other.labels
        and one.owner_references == other.owner_references
        and one.deletion_timestamp == other.deletion_timestamp
    )
