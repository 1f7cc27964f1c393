"""Revisions: which set is the new one, which number it bears, and the numbers it bore before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from mcm.api.machine import MachineDeployment, MachineSet
from mcm.api.names import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_KUBECTL_LAST_APPLIED,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_PREFER_NO_SCHEDULE,
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
)
from mcm.controllers.deployment.template_identity import identity_of

NOT_COPIED: Final = frozenset(
    {
        ANNOTATION_DESIRED_REPLICAS,
        ANNOTATION_KUBECTL_LAST_APPLIED,
        ANNOTATION_MAX_REPLICAS,
        ANNOTATION_PREFER_NO_SCHEDULE,
        ANNOTATION_REVISION,
        ANNOTATION_REVISION_HISTORY,
        ANNOTATION_TRIGGER_DELETION,
        ANNOTATION_UNFREEZE,
    }
)
"""Annotations which belong to a deployment or to a set, and never pass between them."""

HISTORY_LENGTH: Final = 20
"""Earlier revisions that a set remembers."""

_FIRST: Final = datetime.min.replace(tzinfo=UTC)


def by_age(sets: Iterable[MachineSet]) -> list[MachineSet]:
    """Return ``sets``, the oldest first."""
    return sorted(sets, key=lambda s: (s.metadata.creation_timestamp or _FIRST, s.metadata.name))


def new_set_of(deployment: MachineDeployment, sets: Iterable[MachineSet]) -> MachineSet | None:
    """Return the set made from the deployment's template, the oldest if there are several.

    One that is being deleted is none any more.
    """
    wanted = identity_of(deployment.spec.template)
    living = (s for s in by_age(sets) if s.metadata.deletion_timestamp is None)
    return next((s for s in living if identity_of(s.spec.template) == wanted), None)


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
