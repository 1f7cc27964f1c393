"""What pause, resume, restart and undo write on a deployment: merge patches, and refusals.

An undo writes the former template itself, by the controllers' own rule, instead of asking for it in
``spec.rollbackTo``: it takes effect whichever manager runs, or runs later, and what was shown is
what is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import final

import msgspec

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MachineDeployment,
    MachineSet,
    RollbackConfig,
)
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_RESTARTED_AT,
    ANNOTATION_REVISION_HISTORY,
    STRATEGY_IN_PLACE_UPDATE,
)
from mcm.api.templates import annotations_of
from mcm.api.timestamps import rfc3339
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.revisions.numbers import revision_of
from mcm.controllers.deployment.revisions.rollback import (
    EVENT_NO_SUCH_REVISION,
    EVENT_SAME_TEMPLATE,
    rollback,
)


@final
class Refused(Exception):
    """The deployment is in no state for it; the text says why, and what to do instead."""


def pause(deployment: MachineDeployment) -> JSONObject:
    if deployment.spec.paused:
        raise Refused(f"{_called(deployment)} is already paused")
    return {"spec": {"paused": True}}


def resume(deployment: MachineDeployment) -> JSONObject:
    if not deployment.spec.paused:
        raise Refused(f"{_called(deployment)} is not paused")
    return {"spec": {"paused": None}}


def restart(deployment: MachineDeployment, now: datetime) -> JSONObject:
    """Give the template an annotation of its own, so that all machines are replaced by equal ones.

    Raises Refused within the second of the last restart: the annotation would be the same.
    """
    if deployment.spec.paused:
        raise Refused(
            f"{_called(deployment)} is paused and would not restart; "
            "`mcm rollout resume` it first, and try again"
        )
    if defaulted_strategy(deployment.spec).type == STRATEGY_IN_PLACE_UPDATE:
        raise Refused(
            f"{_called(deployment)} updates its machines in place: a restart would replace none of "
            "them; delete machines to have them replaced"
        )
    moment = rfc3339(now)
    if annotations_of(deployment.spec.template).get(ANNOTATION_RESTARTED_AT) == moment:
        raise Refused(f"{_called(deployment)} was restarted within this second; try again later")
    annotations = {ANNOTATION_RESTARTED_AT: moment}
    return {"spec": {"template": {"metadata": {"annotations": annotations}}}}


@final
@dataclass(frozen=True, slots=True)
class Undo:
    """The change back to ``revision``; None if the template is that revision's already."""

    revision: int
    change: JSONObject | None


def undo(snapshot: DeploymentSnapshot, revision: int) -> Undo:
    """Return the change to ``revision``; 0 is the newest that is not the present template's.

    Raises Refused where there is no such revision, or the deployment is paused.
    """
    deployment = snapshot.deployment
    if deployment.spec.paused:
        raise Refused(
            f"{_called(deployment)} is paused and would not roll back; "
            "`mcm rollout resume` it first, and try again"
        )
    spec = msgspec.structs.replace(deployment.spec, rollback_to=RollbackConfig(revision=revision))
    answer = rollback(msgspec.structs.replace(deployment, spec=spec), snapshot.sets)
    assert answer is not None, "it was asked for"
    if answer.event == EVENT_NO_SUCH_REVISION:
        raise Refused(_no_such(snapshot, revision))
    if answer.event == EVENT_SAME_TEMPLATE:
        return Undo(answer.revision, None)
    return Undo(answer.revision, answer.change)


def _no_such(snapshot: DeploymentSnapshot, revision: int) -> str:
    known = sorted(filter(None, (revision_of(s.metadata.annotations) for s in snapshot.sets)))
    listed = ", ".join(map(str, known)) or "none"
    called = _called(snapshot.deployment)
    if not revision:
        return f"{called} has no earlier revision to go back to (there are: {listed})"
    for machine_set in snapshot.sets:
        if str(revision) in earlier_revisions(machine_set):
            now = revision_of(machine_set.metadata.annotations)
            return f"{called}: revision {revision} has become revision {now} (there are: {listed})"
    return f"{called} has no revision {revision} (there are: {listed})"


def earlier_revisions(machine_set: MachineSet) -> tuple[str, ...]:
    """Return the revisions that a set bore before the one it bears."""
    text = machine_set.metadata.annotations.get(ANNOTATION_REVISION_HISTORY, "")
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def _called(deployment: MachineDeployment) -> str:
    return f'{MACHINE_DEPLOYMENTS.name} "{deployment.metadata.name}"'
