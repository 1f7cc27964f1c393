"""A deployment's sets as they should be.

The new set is made from the deployment's template, or brought up to it as far as that needs no new
machines. All sets get their sizes, and say in annotations for what they were scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from mcm.api.codec import to_json_object
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MachineDeployment,
    MachineSet,
    MachineSetSpec,
    MachineTemplate,
)
from mcm.api.meta import LabelSelector, ObjectMeta
from mcm.api.names import (
    ANNOTATION_COMPLETED,
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_FAILING_SINCE,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_PREFER_NO_SCHEDULE,
    LABEL_MACHINE_TEMPLATE_HASH,
    LABEL_VALUE_TRUE,
)
from mcm.api.templates import labels_of, machine_spec_of, with_label
from mcm.api.timestamps import rfc3339
from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.in_place_update.scale_up import locked_labels
from mcm.controllers.deployment.in_place_update.standing import UpdateView
from mcm.controllers.deployment.revisions.numbers import (
    copied_annotations,
    next_revision,
    with_revision,
)
from mcm.controllers.deployment.scale_down_marks import due_annotations, followed_annotations
from mcm.controllers.deployment.sizes.bounds import Bounds, recorded_bounds
from mcm.controllers.deployment.startup_failures import was_complete
from mcm.controllers.deployment.templates import set_name, template_hash
from mcm.controllers.owning import controller_reference
from mcm.controllers.replicas.in_place_fields import (
    IN_PLACE_FIELDS,
    NODE_TEMPLATE,
    configuration_change,
    node_template_change,
)

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
