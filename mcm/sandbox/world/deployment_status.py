"""What a Deployment says of itself, such that ``kubectl rollout status`` knows when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from mcm.api.timestamps import whole_seconds
from mcm.sandbox.world.kinds import (
    Deployment,
    DeploymentCondition,
    DeploymentStatus,
    ReplicaSet,
)
from mcm.sandbox.world.rollouts import bounds_of

_COMPLETE = "NewReplicaSetAvailable"
_UNDER_WAY = "ReplicaSetUpdated"
_TIMED_OUT = "ProgressDeadlineExceeded"


def status_of(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """Sum up the sets' statuses, and judge them."""
    sets = [*old, *([new] if new is not None else [])]
    total = sum(s.status.replicas for s in sets)
    available = sum(s.status.available_replicas for s in sets)
    counted = DeploymentStatus(
        replicas=total,
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(s.status.ready_replicas for s in sets),
        available_replicas=available,
        unavailable_replicas=max(0, deployment.spec.replicas - available),
        observed_generation=deployment.metadata.generation,
    )
    now = whole_seconds(now)
    conditions = (_availability(deployment, counted, now), _progress(deployment, counted, now))
    return msgspec.structs.replace(counted, conditions=conditions)


def seconds_to_deadline(
    deployment: Deployment, status: DeploymentStatus, now: datetime
) -> float | None:
    """Return when a rollout without progress will have failed; None if none is under way."""
    progress = _condition(status, "Progressing")
    if progress is None or progress.reason != _UNDER_WAY or progress.last_update_time is None:
        return None
    deadline = timedelta(seconds=deployment.spec.progress_deadline_seconds)
    return max(0.0, (progress.last_update_time + deadline - now).total_seconds())


def _availability(
    deployment: Deployment, counted: DeploymentStatus, now: datetime
) -> DeploymentCondition:
    enough = counted.available_replicas >= bounds_of(deployment).least
    return _settled(
        deployment,
        DeploymentCondition(
            type="Available",
            status="True" if enough else "False",
            reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            message="enough pods serve" if enough else "too few pods serve",
            last_update_time=now,
            last_transition_time=now,
        ),
    )


def _progress(
    deployment: Deployment, counted: DeploymentStatus, now: datetime
) -> DeploymentCondition:
    before = _condition(deployment.status, "Progressing")
    reason = _progress_reason(deployment, counted, before, now)
    condition = DeploymentCondition(
        type="Progressing",
        status="False" if reason == _TIMED_OUT else "True",
        reason=reason,
        message=_MESSAGES[reason],
        last_update_time=now,
        last_transition_time=now,
    )
    if reason == _UNDER_WAY and _moved(deployment.status, counted) and before is not None:
        # Each step forward starts the deadline anew.
        transition = before.last_transition_time if before.status == "True" else now
        return msgspec.structs.replace(condition, last_transition_time=transition)
    return _settled(deployment, condition)


_MESSAGES = {
    _COMPLETE: "all pods are of the newest revision, and serve",
    _UNDER_WAY: "pods are being replaced",
    _TIMED_OUT: "no progress within progressDeadlineSeconds",
}


def _progress_reason(
    deployment: Deployment,
    counted: DeploymentStatus,
    before: DeploymentCondition | None,
    now: datetime,
) -> str:
    desired = deployment.spec.replicas
    counts = (counted.replicas, counted.updated_replicas, counted.available_replicas)
    if counts == (desired,) * 3:
        return _COMPLETE
    if before is None:
        return _UNDER_WAY
    if before.reason == _COMPLETE and counted.replicas == counted.updated_replicas:
        return _COMPLETE  # a pod lost after the rollout does not undo it
    if before.reason == _COMPLETE or _moved(deployment.status, counted):
        return _UNDER_WAY
    left = seconds_to_deadline(deployment, deployment.status, now)
    return _UNDER_WAY if left else _TIMED_OUT


def _moved(before: DeploymentStatus, counted: DeploymentStatus) -> bool:
    """Whether a rollout is further than it was."""
    return (
        counted.updated_replicas > before.updated_replicas
        or counted.ready_replicas > before.ready_replicas
        or counted.available_replicas > before.available_replicas
        or counted.replicas - counted.updated_replicas < before.replicas - before.updated_replicas
    )


def _settled(deployment: Deployment, condition: DeploymentCondition) -> DeploymentCondition:
    """Keep the times of a condition that says what it said before."""
    before = _condition(deployment.status, condition.type)
    if before is None or before.status != condition.status:
        return condition
    kept = msgspec.structs.replace(condition, last_transition_time=before.last_transition_time)
    if before.reason != condition.reason:
        return kept
    return msgspec.structs.replace(kept, last_update_time=before.last_update_time)


def _condition(status: DeploymentStatus, kind: str) -> DeploymentCondition | None:
    return next((c for c in status.conditions if c.type == kind), None)
