"""A deployment's status, summed up over its sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from mcm.api.codec import to_json_object
from mcm.api.machine import (
    MachineDeployment,
    MachineDeploymentCondition,
    MachineDeploymentStatus,
    MachineSet,
    MachineSummary,
)
from mcm.api.meta import JSONObject
from mcm.api.names import (
    CONDITION_AVAILABLE,
    CONDITION_REPLICA_FAILURE,
    REASON_MINIMUM_AVAILABLE,
    REASON_MINIMUM_UNAVAILABLE,
    STATUS_FALSE,
    STATUS_TRUE,
)
from mcm.api.patches import explicit_zeros, merge_diff
from mcm.controllers.deployment.conditions import (
    Conditions,
    with_condition,
    with_copy,
    without,
)
from mcm.controllers.deployment.limits import Limits


def counted_status(
    deployment: MachineDeployment,
    sets: Sequence[MachineSet],
    new: MachineSet | None,
    limits: Limits,
    now: datetime,
) -> MachineDeploymentStatus:
    """Return the status with everything but ``Progressing``; ``sets`` are all, oldest first."""
    available = sum(s.status.available_replicas for s in sets)
    preserved = sum(s.status.preserved_failed_replicas for s in sets)
    enough = available >= max(0, limits.least - preserved)
    old_sets = [s for s in sets if s is not new]
    conditions = _with_availability(deployment.status.conditions, enough=enough, now=now)
    return msgspec.structs.replace(
        deployment.status,
        observed_generation=deployment.metadata.generation,
        replicas=sum(s.status.replicas for s in sets),
        updated_replicas=new.status.replicas if new else 0,
        ready_replicas=sum(s.status.ready_replicas for s in sets),
        available_replicas=available,
        preserved_failed_replicas=preserved,
        unavailable_replicas=max(0, sum(s.spec.replicas for s in sets) - available),
        failed_machines=_failed_machines(sets),
        conditions=_with_set_failure(conditions, new, old_sets),
    )


def is_complete(status: MachineDeploymentStatus, deployment: MachineDeployment) -> bool:
    """Tell whether all machines are of the new template, as many as desired, and serve."""
    desired = deployment.spec.replicas
    return (
        status.updated_replicas == desired
        and status.replicas == desired
        and status.available_replicas == desired
        and status.observed_generation >= deployment.metadata.generation
    )


def status_change(old: MachineDeploymentStatus, wanted: MachineDeploymentStatus) -> JSONObject:
    """Return the merge patch from one status to the other; empty if they are equal."""
    difference = merge_diff(to_json_object(old), to_json_object(wanted))
    return {"status": explicit_zeros(difference)} if difference else {}


def _failed_machines(sets: Iterable[MachineSet]) -> tuple[MachineSummary, ...] | None:
    return tuple(m for s in sets for m in s.status.failed_machines or ()) or None


def _with_availability(conditions: Conditions, *, enough: bool, now: datetime) -> Conditions:
    if enough:
        status, reason = STATUS_TRUE, REASON_MINIMUM_AVAILABLE
        message = "Deployment has minimum availability."
    else:
        status, reason = STATUS_FALSE, REASON_MINIMUM_UNAVAILABLE
        message = "Deployment does not have minimum availability."
    return with_condition(conditions, CONDITION_AVAILABLE, status, reason, message, now=now)


def _with_set_failure(
    conditions: Conditions, new: MachineSet | None, old_sets: Iterable[MachineSet]
) -> Conditions:
    """Show the first set that cannot make or delete machines, the new one before all others."""
    for candidate in (new, *old_sets):
        for condition in candidate.status.conditions if candidate else ():
            if condition.type == CONDITION_REPLICA_FAILURE:
                copied = MachineDeploymentCondition(
                    type=condition.type,
                    status=condition.status,
                    last_update_time=condition.last_transition_time,
                    last_transition_time=condition.last_transition_time,
                    reason=condition.reason,
                    message=condition.message,
                )
                return with_copy(conditions, copied)
    return without(conditions, CONDITION_REPLICA_FAILURE)
