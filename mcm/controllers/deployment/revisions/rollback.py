"""Going back to an earlier revision because somebody asks for it.

A rollback (``spec.rollbackTo``, deprecated but served) changes the deployment only; the update to
the template it then has is like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

from mcm.api.codec import to_json_object
from mcm.api.machine import MachineDeployment, MachineSet, MachineTemplate
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_MACHINE_TEMPLATE_HASH
from mcm.api.patches import merge_diff
from mcm.api.templates import without_label
from mcm.controllers.deployment.revisions.numbers import NOT_COPIED, revision_of
from mcm.controllers.deployment.templates import same_template

EVENT_DONE: Final = "DeploymentRollback"
EVENT_NO_SUCH_REVISION: Final = "DeploymentRollbackRevisionNotFound"
EVENT_SAME_TEMPLATE: Final = "DeploymentRollbackTemplateUnchanged"


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
        note = _not_found(wanted.revision, sets)
        return Rollback(_clearing({}), EVENT_NO_SUCH_REVISION, "Warning", note)
    revision = revision_of(target.metadata.annotations) or 0
    if same_template(target.spec.template, deployment.spec.template):
        note = f"Revision {revision} has the present template already: nothing to roll back"
        return Rollback(_clearing({}), EVENT_SAME_TEMPLATE, "Warning", note, revision)
    note = f"Rolled back to revision {revision}"
    return Rollback(return_to(deployment, target), EVENT_DONE, "Normal", note, revision)


def _not_found(revision: int, sets: Sequence[MachineSet]) -> str:
    if not revision:
        return "Cannot roll back: no machine set of an earlier revision is there"
    numbers = sorted({n for s in sets if (n := revision_of(s.metadata.annotations))})
    there = f"; there are {', '.join(map(str, numbers))}" if numbers else ""
    return f"Cannot roll back: no machine set has revision {revision}{there}"


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
