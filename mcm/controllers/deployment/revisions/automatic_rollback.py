"""Goes back by itself from a rollout that fails, to the last template that all machines once had.

Only where the deployment's annotation asks for it, and says after how long. It is one patch of the
deployment, which holds the template and the record of what was done and why. From the template it
went back to it never goes on to another one, so that it cannot go to and fro: that takes somebody
who declares another template, which may well be the one that failed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final, final

import msgspec

from mcm.api.durations import format_duration, parse_duration
from mcm.api.machine import MachineDeployment, MachineDeploymentCondition, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_ROLLBACK_AFTER,
    ANNOTATION_ROLLED_BACK,
    CONDITION_PROGRESSING,
    REASON_DEADLINE_EXCEEDED,
    REASON_NEW_MACHINES_FAILING,
    STATUS_FALSE,
    STATUS_TRUE,
    STRATEGY_IN_PLACE_UPDATE,
)
from mcm.controllers.conditions import find, without
from mcm.controllers.deployment.conditions import Conditions, with_text
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.revisions.numbers import revision_of
from mcm.controllers.deployment.revisions.rollback import Rollback, return_to
from mcm.controllers.deployment.startup_failures import was_complete, without_advice
from mcm.controllers.deployment.templates import same_template

CONDITION_ROLLED_BACK: Final = "RolledBack"
"""True while the template is one that was gone back to without anybody asking."""
EVENT_ROLLED_BACK: Final = "AutomaticRollback"

_FAILURES: Final = frozenset({REASON_NEW_MACHINES_FAILING, REASON_DEADLINE_EXCEEDED})


@final
@dataclass(frozen=True, slots=True)
class RollbackRecord:
    """What an automatic rollback left, from which set, to which, and ``why`` in words."""

    left: str
    restored: str
    reason: str
    why: str


def due_at(snapshot: DeploymentSnapshot) -> datetime | None:
    """Return when the rollout is to be rolled back if it fails until then; None: never."""
    spec, new = snapshot.deployment.spec, snapshot.new
    after, failure = _patience(snapshot.deployment), _failure(snapshot)
    if new is None or after is None or failure is None or failure.last_transition_time is None:
        return None
    if spec.paused or spec.rollback_to is not None:
        return None
    record = read_record(snapshot.deployment)
    restored = record is not None and record.restored == new.metadata.name
    if restored or snapshot.strategy == STRATEGY_IN_PLACE_UPDATE or _target(snapshot) is None:
        return None
    return failure.last_transition_time + after


def automatic_rollback(snapshot: DeploymentSnapshot, now: datetime) -> Rollback | None:
    """Return the way back if it is time for it; None if not."""
    at, target, failure = due_at(snapshot), _target(snapshot), _failure(snapshot)
    if at is None or at > now or target is None or failure is None or snapshot.new is None:
        return None
    if failure.reason == REASON_NEW_MACHINES_FAILING and (
        snapshot.failing_since(snapshot.new, now) is None
    ):
        return None  # they have just come up
    after = format_duration(_patience(snapshot.deployment) or timedelta(0))
    note = (
        f"Rolled back from {_called(snapshot.new)} to {_called(target)}, the last one that was "
        f"complete, as the rollout failed for {after}: {without_advice(failure.message)}"
    )
    record = RollbackRecord(snapshot.new.metadata.name, target.metadata.name, failure.reason, note)
    change = return_to(snapshot.deployment, target)
    revision = revision_of(target.metadata.annotations) or 0
    return Rollback(_recording(change, record), EVENT_ROLLED_BACK, "Warning", note, revision)


def read_record(deployment: MachineDeployment) -> RollbackRecord | None:
    """Return what the last automatic rollback left; None if there was none."""
    text = deployment.metadata.annotations.get(ANNOTATION_ROLLED_BACK)
    try:
        return msgspec.json.decode(text, type=RollbackRecord) if text else None
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def with_rolled_back(
    conditions: Conditions, snapshot: DeploymentSnapshot, now: datetime
) -> Conditions:
    """Tell of an automatic rollback for as long as its template stays."""
    record, new = read_record(snapshot.deployment), snapshot.new
    if record is None or new is None or record.restored != new.metadata.name:
        return without(conditions, CONDITION_ROLLED_BACK)
    return with_text(
        conditions, CONDITION_ROLLED_BACK, STATUS_TRUE, record.reason, record.why, now=now
    )


def _patience(deployment: MachineDeployment) -> timedelta | None:
    text = deployment.metadata.annotations.get(ANNOTATION_ROLLBACK_AFTER)
    try:
        span = parse_duration(text) if text else None
    except ValueError:
        return None
    return span if span is not None and span >= timedelta(0) else None


def _failure(snapshot: DeploymentSnapshot) -> MachineDeploymentCondition | None:
    """The word that the rollout of the present template fails, if the status says so."""
    deployment = snapshot.deployment
    if deployment.status.observed_generation < deployment.metadata.generation:
        return None
    said = find(deployment.status.conditions, CONDITION_PROGRESSING)
    failed = said is not None and said.status == STATUS_FALSE and said.reason in _FAILURES
    return said if failed else None


def _target(snapshot: DeploymentSnapshot) -> MachineSet | None:
    """The set of the newest template that was complete once, and is not the present one."""
    present = snapshot.deployment.spec.template
    candidates = (
        s
        for s in snapshot.sets
        if s.metadata.deletion_timestamp is None
        and was_complete(s)
        and not same_template(s.spec.template, present)
    )
    return max(candidates, key=lambda s: revision_of(s.metadata.annotations) or 0, default=None)


def _called(machine_set: MachineSet) -> str:
    revision = revision_of(machine_set.metadata.annotations)
    return f'revision {revision} (MachineSet "{machine_set.metadata.name}")'


def _recording(change: JSONObject, record: RollbackRecord) -> JSONObject:
    meta = change.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    kept = annotations if isinstance(annotations, dict) else {}
    noted: JSONObject = {**kept, ANNOTATION_ROLLED_BACK: json.dumps(asdict(record))}
    return {**change, "metadata": {"annotations": noted}}
