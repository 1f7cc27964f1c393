"""The templates a StatefulSet has had: found by name, kept as objects of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mcm.api.meta import JSONObject
from mcm.sandbox.world.kinds import PodTemplate
from mcm.sandbox.world.owned_pods import owner_reference, template_hash
from mcm.sandbox.world.stateful_sets.kinds import (
    STATEFUL_SETS,
    ControllerRevision,
    StatefulSet,
)

_LABEL_HASH = "controller.kubernetes.io/hash"


def revision_name(stateful_set: StatefulSet) -> str:
    """Return the name of the template that the set has now."""
    return f"{stateful_set.metadata.name}-{template_hash(stateful_set.spec.template)}"


def revision_manifest(stateful_set: StatefulSet, number: int) -> JSONObject:
    """Return the object that keeps the set's template, in the form ``kubectl rollout`` reads."""
    template = stateful_set.spec.template
    labels = {**PodTemplate.read(template).metadata.labels, _LABEL_HASH: template_hash(template)}
    return {
        "metadata": {
            "name": revision_name(stateful_set),
            "labels": labels,
            "ownerReferences": [owner_reference(STATEFUL_SETS, stateful_set)],
        },
        "revision": number,
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
    }


def template_of(revision: ControllerRevision | None) -> JSONObject | None:
    """Return the template that a revision keeps; None if it holds none."""
    spec = revision.data.get("spec") if revision is not None else None
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        return None
    return {name: value for name, value in template.items() if name != "$patch"}


def next_number(known: Collection[ControllerRevision]) -> int:
    return max((r.revision for r in known), default=0) + 1


def to_forget(
    known: Collection[ControllerRevision], *, used: Collection[str], limit: int
) -> Sequence[ControllerRevision]:
    """Return the unused revisions beyond the limit, the oldest ones."""
    unused = sorted((r for r in known if r.metadata.name not in used), key=lambda r: r.revision)
    return unused[: max(0, len(unused) - max(0, limit))]
