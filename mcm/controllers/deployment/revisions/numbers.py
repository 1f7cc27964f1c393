"""Revisions: which number a set bears, what comes with it, and how many old sets are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mcm.api.machine import MachineDeployment, MachineSet
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
    ANNOTATION_SHARD,
    ANNOTATION_STARTUP_FAILURES,
    ANNOTATION_SURGE_POOL,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
)
from mcm.controllers.deployment.fleet import by_age

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
        ANNOTATION_SHARD,
        ANNOTATION_STARTUP_FAILURES,
        ANNOTATION_TRIGGER_DELETION,
        ANNOTATION_UNFREEZE,
    }
)
"""Annotations which belong to a deployment or to a set, and never pass between them."""

HISTORY_LENGTH: Final = 20
"""Earlier revisions that a set remembers."""


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
