"""A deployment's sets as they should be, and the writes that make them so.

The new set is made from the deployment's template, or brought up to it as far as that needs no new
machines. All sets get their sizes, and say in annotations for what they were scaled. What is
written is the difference to what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, final

import msgspec

from mcm.api.codec import to_json_object
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
    MachineSetSpec,
    MachineTemplate,
)
from mcm.api.meta import JSONObject, LabelSelector, ObjectMeta
from mcm.api.names import (
    ANNOTATION_COMPLETED,
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_FAILING_SINCE,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_PREFER_NO_SCHEDULE,
    LABEL_MACHINE_TEMPLATE_HASH,
    LABEL_VALUE_TRUE,
)
from mcm.api.patches import explicit_zeros, merge_diff
from mcm.api.templates import labels_of, machine_spec_of, with_label
from mcm.api.timestamps import rfc3339
from mcm.client.errors import KubeError
from mcm.client.verbs import ObjectReader, ObjectWriter
from mcm.controllers.deployment.bounds import Bounds, recorded_bounds
from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import OWNERSHIP, DeploymentSnapshot, by_age
from mcm.controllers.deployment.in_place_update.scale_up import locked_labels
from mcm.controllers.deployment.in_place_update.standing import UpdateView
from mcm.controllers.deployment.returning_machines import mark_of, undecided
from mcm.controllers.deployment.revisions import copied_annotations, next_revision, with_revision
from mcm.controllers.deployment.scale_down_marks import due_annotations, followed_annotations
from mcm.controllers.deployment.startup_failures import was_complete
from mcm.controllers.deployment.templates import same_template, set_name, template_hash
from mcm.controllers.fanout import fan_out, patch_each
from mcm.controllers.owning import (
    Claimer,
    abandoned_for,
    children_of,
    controller_reference,
    create_or_find,
    delete_children,
    index_by_uid,
    orphans_for,
)
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.replicas.in_place_fields import (
    IN_PLACE_FIELDS,
    NODE_TEMPLATE,
    configuration_change,
    node_template_change,
)
from mcm.events import EventSink
from mcm.informers.store import Store

EVENT_SCALED: Final = "ScalingMachineSet"

Errors = Sequence[KubeError]

_IDENTITY_FIELDS = frozenset({"class", "providerID"})


def new_set(
    deployment: MachineDeployment,
    old_sets: Iterable[MachineSet],
    *,
    replicas: int,
    bounds: Bounds,
    mark: str | None = None,
) -> MachineSet:
    """Return the set to create for the deployment's template. ``mark`` is the template hash of the
    machines that it shall adopt, if there are any."""
    meta, spec = deployment.metadata, deployment.spec
    collisions = deployment.status.collision_count
    mark = mark or template_hash(spec.template, collisions)
    selector = spec.selector or LabelSelector()
    copied = {**copied_annotations(deployment), **followed_annotations(deployment)}
    annotations = with_revision(copied, next_revision(old_sets))
    return MachineSet(
        metadata=ObjectMeta(
            name=set_name(meta.name, spec.template, collisions),
            namespace=meta.namespace,
            labels={**labels_of(spec.template), LABEL_MACHINE_TEMPLATE_HASH: mark},
            annotations={**annotations, **size_annotations(bounds)},
            owner_references=(controller_reference(MACHINE_DEPLOYMENTS, meta),),
        ),
        spec=MachineSetSpec(
            replicas=replicas,
            selector=msgspec.structs.replace(
                selector,
                match_labels={**selector.match_labels, LABEL_MACHINE_TEMPLATE_HASH: mark},
            ),
            template=with_label(spec.template, LABEL_MACHINE_TEMPLATE_HASH, mark),
            min_ready_seconds=spec.min_ready_seconds,
            auto_preserve_failed_machine_max=spec.auto_preserve_failed_machine_max,
        ),
    )


def size_annotations(bounds: Bounds) -> Mapping[str, str]:
    """Return the annotations that say for what a set was last scaled."""
    return {
        ANNOTATION_DESIRED_REPLICAS: str(bounds.desired),
        ANNOTATION_MAX_REPLICAS: str(bounds.desired + bounds.surge),
    }


def updated_set(
    present: MachineSet, deployment: MachineDeployment, old_sets: Iterable[MachineSet]
) -> MachineSet:
    """Return ``present``, a set of the deployment's template, with all that follows the deployment
    without new machines: annotations, revision, and what a template can change in place."""
    spec = deployment.spec
    annotations = {**present.metadata.annotations, **copied_annotations(deployment)}
    return msgspec.structs.replace(
        present,
        metadata=msgspec.structs.replace(
            present.metadata, annotations=with_revision(annotations, next_revision(old_sets))
        ),
        spec=msgspec.structs.replace(
            present.spec,
            template=_updated_template(present.spec.template, spec.template),
            min_ready_seconds=spec.min_ready_seconds,
            auto_preserve_failed_machine_max=spec.auto_preserve_failed_machine_max,
        ),
    )


def _updated_template(present: MachineTemplate, wanted: MachineTemplate) -> MachineTemplate:
    had, has = machine_spec_of(present), machine_spec_of(wanted)
    changed = configuration_change(had, has)
    changed |= node_template_change(
        had.node_template,
        has.node_template,
        raw=wanted.spec.get(NODE_TEMPLATE),
        raw_before=present.spec.get(NODE_TEMPLATE),
    )
    spec = {k: v for k, v in present.spec.items() if k not in changed and not _is_foreign(k)}
    spec |= {k: wanted.spec[k] for k in changed if wanted.spec.get(k) is not None}
    spec |= {k: v for k, v in wanted.spec.items() if _is_foreign(k) and v is not None}
    if had.class_.kind != has.class_.kind:
        spec["class"] = {**to_json_object(had.class_), "kind": has.class_.kind}
    return MachineTemplate(metadata=present.metadata, spec=spec)


def _is_foreign(field: str) -> bool:
    """A field nobody here knows; it is carried along."""
    return field not in IN_PLACE_FIELDS and field not in _IDENTITY_FIELDS


def set_change(present: MachineSet, wanted: MachineSet) -> JSONObject:
    """Return the merge patch from one set to the other, statuses aside; empty if they are equal."""
    before, after = to_json_object(present), to_json_object(wanted)
    before.pop("status", None)
    after.pop("status", None)
    return explicit_zeros(merge_diff(before, after))


def wanted_sets(
    snapshot: DeploymentSnapshot,
    decision: Decision,
    now: datetime,
    *,
    marking: bool,
    updates: UpdateView | None = None,
) -> Iterator[tuple[MachineSet, MachineSet]]:
    """Yield each set that can be changed with what it should be: those that grow after those that
    do not, and else the new one first.

    One write thus brings a set its size, the word of it, and all that follows its deployment.
    ``marking``: nodes of old sets get a taint, and the sets are to say so beforehand. ``updates``:
    where machines stand in an update in place, if one is known of.
    """

    def grows(machine_set: MachineSet) -> bool:
        size = machine_set.spec.replicas
        return decision.targets.get(machine_set.metadata.uid, size) > size

    living = [s for s in snapshot.sets if s.metadata.deletion_timestamp is None]
    for present in sorted(living, key=lambda s: (grows(s), s is not snapshot.new)):
        wanted = _sized(present, snapshot, decision)
        if updates is not None:
            wanted = _labelled(wanted, locked_labels(updates, present))
        if present is snapshot.new:
            wanted = updated_set(wanted, snapshot.deployment, snapshot.old)
        elif marking and snapshot.new and snapshot.machines[present.metadata.uid]:
            wanted = _annotated(wanted, {ANNOTATION_PREFER_NO_SCHEDULE: LABEL_VALUE_TRUE})
        if present.metadata.uid not in decision.withheld:
            wanted = _annotated(wanted, _times_of_change(present, snapshot))
        yield present, _with_notes(present, wanted, snapshot, now)


def completed_sets(snapshot: DeploymentSnapshot) -> Iterator[tuple[MachineSet, MachineSet]]:
    """Yield the set that all machines are of as a rollout begins, with the mark that it worked."""
    for present in snapshot.sets:
        if snapshot.was_complete(present) and not was_complete(present):
            yield present, _annotated(present, {ANNOTATION_COMPLETED: LABEL_VALUE_TRUE})


def _with_notes(
    present: MachineSet, wanted: MachineSet, snapshot: DeploymentSnapshot, now: datetime
) -> MachineSet:
    """Let a set bear what later passes must know of it: whether its machines fail to come up, and
    that all was once complete with them. One that begins anew has to prove itself anew.

    A fleet at rest is not written to: one that another controller completed is marked when its next
    rollout begins.
    """
    annotations = dict(wanted.metadata.annotations)
    failing = snapshot.failing_since(present, now)
    if failing is not None:
        annotations[ANNOTATION_FAILING_SINCE] = rfc3339(failing)
    else:
        annotations.pop(ANNOTATION_FAILING_SINCE, None)
    completes = present is snapshot.new and not snapshot.is_settled and snapshot.is_complete(now)
    if completes or snapshot.was_complete(present):
        annotations[ANNOTATION_COMPLETED] = LABEL_VALUE_TRUE
    elif present.spec.replicas == 0 and wanted.spec.replicas > 0:
        annotations.pop(ANNOTATION_COMPLETED, None)
    if annotations == wanted.metadata.annotations:
        return wanted
    return _with_annotations(wanted, annotations)


def without_taint_annotation(machine_set: MachineSet) -> MachineSet:
    """Return the set without word of a taint on its nodes."""
    annotations = machine_set.metadata.annotations
    kept = {k: v for k, v in annotations.items() if k != ANNOTATION_PREFER_NO_SCHEDULE}
    return _with_annotations(machine_set, kept)


def _sized(present: MachineSet, snapshot: DeploymentSnapshot, decision: Decision) -> MachineSet:
    """Give a set its size. One in use, or about to leave use, says for what it was scaled."""
    replicas = decision.targets.get(present.metadata.uid, present.spec.replicas)
    withheld = present.metadata.uid in decision.withheld
    if withheld or (replicas == 0 and present.spec.replicas == 0):
        return present
    sized = msgspec.structs.replace(
        present, spec=msgspec.structs.replace(present.spec, replicas=replicas)
    )
    return _annotated(sized, dict(size_annotations(recorded_bounds(snapshot.deployment.spec))))


def _times_of_change(present: MachineSet, snapshot: DeploymentSnapshot) -> Mapping[str, str]:
    """What makes a set delete the machines that the autoscaler chose; it comes with the set's size,
    since a set that is not smaller yet would replace them."""
    deployment, machines = snapshot.deployment, snapshot.machines[present.metadata.uid]
    followed = followed_annotations(deployment, present) if present is snapshot.new else {}
    return {**followed, **due_annotations(deployment, present, machines)}


def _annotated(machine_set: MachineSet, more: Mapping[str, str]) -> MachineSet:
    return _with_annotations(machine_set, {**machine_set.metadata.annotations, **more})


def _labelled(machine_set: MachineSet, labels: Mapping[str, str]) -> MachineSet:
    metadata = msgspec.structs.replace(machine_set.metadata, labels=dict(labels))
    return msgspec.structs.replace(machine_set, metadata=metadata)


def _with_annotations(machine_set: MachineSet, annotations: dict[str, str]) -> MachineSet:
    metadata = msgspec.structs.replace(machine_set.metadata, annotations=annotations)
    return msgspec.structs.replace(machine_set, metadata=metadata)


# ---- the writes ----------------------------------------------------------------------------------


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
