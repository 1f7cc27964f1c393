"""Revisions: which number a set bears, how many old sets are kept, and going back to one of them.

A rollback (``spec.rollbackTo``, deprecated but served) changes the deployment only; the update to
the template it then has is like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

from mcm.api.codec import to_json_object
from mcm.api.machine import MachineDeployment, MachineSet, MachineTemplate
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_COMPLETED,
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_FAILING_SINCE,
    ANNOTATION_KUBECTL_LAST_APPLIED,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_PREFER_NO_SCHEDULE,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
    ANNOTATION_ROLLBACK_AFTER,
    ANNOTATION_ROLLED_BACK,
    ANNOTATION_STARTUP_FAILURES,
    ANNOTATION_SURGE_POOL,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
    LABEL_MACHINE_TEMPLATE_HASH,
)
from mcm.api.patches import merge_diff
from mcm.api.templates import without_label
from mcm.controllers.deployment.fleet import by_age
from mcm.controllers.deployment.templates import same_template

NOT_COPIED: Final = frozenset(
    {
        ANNOTATION_COMPLETED,
        ANNOTATION_DESIRED_REPLICAS,
        ANNOTATION_FAILING_SINCE,
        ANNOTATION_KUBECTL_LAST_APPLIED,
        ANNOTATION_MAX_REPLICAS,
        ANNOTATION_PREFER_NO_SCHEDULE,
        ANNOTATION_REPLICA_CHANGE_BY_SCALER,
        ANNOTATION_REVISION,
        ANNOTATION_REVISION_HISTORY,
        ANNOTATION_SURGE_POOL,
        ANNOTATION_ROLLBACK_AFTER,
        ANNOTATION_ROLLED_BACK,
        ANNOTATION_STARTUP_FAILURES,
        ANNOTATION_TRIGGER_DELETION,
        ANNOTATION_UNFREEZE,
    }
)
"""Annotations which belong to a deployment or to a set, and never pass between them."""

HISTORY_LENGTH: Final = 20
"""Earlier revisions that a set remembers."""

EVENT_DONE: Final = "DeploymentRollback"
EVENT_NO_SUCH_REVISION: Final = "DeploymentRollbackRevisionNotFound"
EVENT_SAME_TEMPLATE: Final = "DeploymentRollbackTemplateUnchanged"


def revision_of(annotations: Mapping[str, str]) -> int | None:
    """Read the revision; None if there is none, or no number."""
    text = annotations.get(ANNOTATION_REVISION, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def next_revision(old_sets: Iterable[MachineSet]) -> int:
    """Return the number of a new set beside ``old_sets``: greater than theirs."""
    return 1 + max((revision_of(s.metadata.annotations) or 0 for s in old_sets), default=0)


def copied_annotations(deployment: MachineDeployment) -> Mapping[str, str]:
    """Return the deployment's annotations that its new set bears too."""
    annotations = deployment.metadata.annotations
    return {key: value for key, value in annotations.items() if key not in NOT_COPIED}


def with_revision(annotations: Mapping[str, str], revision: int) -> dict[str, str]:
    """Raise the revision to ``revision``, remembering the one before; it never falls."""
    present = revision_of(annotations)
    if present is not None and present >= revision:
        return dict(annotations)
    result = {**annotations, ANNOTATION_REVISION: str(revision)}
    if present is not None:
        history = [*_history(annotations), str(present)]
        result[ANNOTATION_REVISION_HISTORY] = ",".join(history[-HISTORY_LENGTH:])
    return result


def _history(annotations: Mapping[str, str]) -> Sequence[str]:
    text = annotations.get(ANNOTATION_REVISION_HISTORY, "")
    return [entry for entry in text.split(",") if entry]


# ---- history -------------------------------------------------------------------------------------


def beyond_history(old_sets: Sequence[MachineSet], limit: int | None) -> Sequence[MachineSet]:
    """Return the old sets to delete: the oldest beyond ``limit``, if they are empty.

    One that still has machines, or news to take in, is skipped and no other goes in its place.
    Without a limit all are kept.
    """
    if limit is None:
        return ()
    kept = [s for s in old_sets if s.metadata.deletion_timestamp is None]
    excess = by_age(kept)[: max(0, len(kept) - limit)]
    return tuple(s for s in excess if _is_empty(s))


def _is_empty(machine_set: MachineSet) -> bool:
    return (
        machine_set.spec.replicas == 0
        and machine_set.status.replicas == 0
        and machine_set.metadata.generation <= machine_set.status.observed_generation
    )


# ---- rollback ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Rollback:
    """The change of the deployment, which always clears ``rollbackTo``, and what to tell of it.

    ``revision`` is the one that it leads back to, 0 if there is none such.
    """

    change: JSONObject
    event: str
    kind: Literal["Normal", "Warning"]
    note: str
    revision: int = 0


def rollback(deployment: MachineDeployment, sets: Sequence[MachineSet]) -> Rollback | None:
    """Answer ``spec.rollbackTo``; None if it asks for nothing.

    Revision 0 is the newest one that is not the present template's.
    """
    wanted = deployment.spec.rollback_to
    if wanted is None:
        return None
    target = _last(deployment, sets) if wanted.revision == 0 else _find(sets, wanted.revision)
    if target is None:
        asked = f"revision {wanted.revision}" if wanted.revision else "an earlier revision"
        note = f"Cannot roll back: no machine set of {asked} is there any more"
        return Rollback(_clearing({}), EVENT_NO_SUCH_REVISION, "Warning", note)
    revision = revision_of(target.metadata.annotations) or 0
    if same_template(target.spec.template, deployment.spec.template):
        note = f"Revision {revision} has the present template already: nothing to roll back"
        return Rollback(_clearing({}), EVENT_SAME_TEMPLATE, "Warning", note, revision)
    note = f"Rolled back to revision {revision}"
    return Rollback(return_to(deployment, target), EVENT_DONE, "Normal", note, revision)


def _find(sets: Sequence[MachineSet], revision: int) -> MachineSet | None:
    return next((s for s in sets if revision_of(s.metadata.annotations) == revision), None)


def _last(deployment: MachineDeployment, sets: Sequence[MachineSet]) -> MachineSet | None:
    present = deployment.spec.template
    numbered = (
        (revision_of(s.metadata.annotations) or 0, s)
        for s in sets
        if not same_template(s.spec.template, present)
    )
    known = ((number, s) for number, s in numbered if number)
    return max(known, key=lambda pair: pair[0], default=(0, None))[1]


def return_to(deployment: MachineDeployment, target: MachineSet) -> JSONObject:
    """Return the change to the set's template and annotations; what is the deployment's own stays.
    It asks for no further rollback."""
    present = deployment.metadata.annotations
    annotations = {k: v for k, v in present.items() if k in NOT_COPIED}
    annotations |= {k: v for k, v in target.metadata.annotations.items() if k not in NOT_COPIED}
    change: JSONObject = {"spec": {"template": _template_change(deployment, target)}}
    if moved := merge_diff(present, annotations):
        change["metadata"] = {"annotations": moved}
    return _clearing(change)


def _template_change(deployment: MachineDeployment, target: MachineSet) -> JSONObject:
    wanted: MachineTemplate = without_label(target.spec.template, LABEL_MACHINE_TEMPLATE_HASH)
    return merge_diff(to_json_object(deployment.spec.template), to_json_object(wanted))


def _clearing(change: JSONObject) -> JSONObject:
    spec = change.get("spec")
    return {**change, "spec": {**(spec if isinstance(spec, dict) else {}), "rollbackTo": None}}
