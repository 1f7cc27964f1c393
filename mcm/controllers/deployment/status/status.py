"""The status that one pass leaves behind: counts over the sets, and what conditions say of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from mcm.api.machine import (
    Machine,
    MachineDeployment,
    MachineDeploymentCondition,
    MachineDeploymentStatus,
    MachineSet,
    MachineSummary,
)
from mcm.api.names import (
    CONDITION_AVAILABLE,
    CONDITION_REPLICA_FAILURE,
    REASON_MINIMUM_AVAILABLE,
    REASON_MINIMUM_UNAVAILABLE,
    REASON_NO_TARGET_CLUSTER,
    STATUS_FALSE,
    STATUS_TRUE,
)
from mcm.controllers.conditions import without
from mcm.controllers.deployment.conditions import Conditions, with_condition, with_copy
from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.in_place_update.remarks import with_remark
from mcm.controllers.deployment.revisions.automatic_rollback import with_rolled_back
from mcm.controllers.deployment.sizes.bounds import Bounds, bounds_of
from mcm.controllers.deployment.status.frozen import hindrance, with_frozen
from mcm.controllers.deployment.status.held_up_drains import with_held_up_drains
from mcm.controllers.deployment.status.orphaned_machines import with_orphans
from mcm.controllers.deployment.status.pause import with_paused
from mcm.controllers.deployment.status.progress import (
    Failing,
    evaluated,
    failing_new_set,
    refused,
    with_new_set,
    with_pause,
    without_refusal,
)
from mcm.controllers.deployment.status.strategy_warning import with_strategy_warning
from mcm.controllers.deployment.surge_pool.conditions import with_pool
from mcm.controllers.deployment.surge_pool.turns import Turn
from mcm.controllers.overshooting.limits import Limits


def status_after(
    snapshot: DeploymentSnapshot,
    decision: Decision,
    now: datetime,
    *,
    created: bool,
    turn: Turn | None = None,
    limits: Limits | None = None,
    orphans: Sequence[Machine] | None = None,
    remark: str = "",
) -> MachineDeploymentStatus:
    """Return the status to be written; it equals the present one if there is nothing to say.

    ``created``: the new set was made in this pass. ``turn``: what its surge pool means for it.
    ``limits`` are those at which sets are frozen and unfrozen, None: they are not known.
    ``orphans``: machines that it selects and no set adopts; None: that is not known.
    ``remark``: what there is to say about machines that are updated in place.
    """
    deployment, conditions = snapshot.deployment, snapshot.deployment.status.conditions
    if decision.refusal:
        conditions = refused(conditions, REASON_NO_TARGET_CLUSTER, decision.refusal, now)
    else:
        conditions = without_refusal(conditions)
    conditions = with_pause(conditions, paused=deployment.spec.paused, now=now)
    conditions = with_rolled_back(conditions, snapshot, now)
    conditions = with_paused(conditions, paused=deployment.spec.paused, now=now)
    conditions = with_orphans(conditions, orphans, now)
    conditions = with_held_up_drains(conditions, snapshot, now)
    conditions = with_pool(conditions, turn, now)
    of = turn.budget.replicas if turn else None
    conditions = with_strategy_warning(conditions, deployment.spec, now, of=of)
    judged = _with(deployment.status, conditions)
    counted = counted_status(
        msgspec.structs.replace(deployment, status=judged),
        snapshot.sets,
        snapshot.new,
        bounds_of(snapshot.deployment.spec),
        now,
    )
    conditions = with_new_set(counted.conditions, snapshot.new, created=created, now=now)
    counted = _with(counted, with_frozen(conditions, snapshot, limits, now))
    if decision.rolling and not (turn and turn.waits):
        why, failing = hindrance(snapshot, limits), _failing(snapshot, now)
        counted = evaluated(deployment, counted, snapshot.new, now, hindrance=why, failing=failing)
    return _with(counted, with_remark(counted.conditions, remark))


def _failing(snapshot: DeploymentSnapshot, now: datetime) -> Failing | None:
    new = snapshot.new
    since = snapshot.failing_since(new, now) if new is not None else None
    if new is None or since is None:
        return None
    machines = snapshot.machines[new.metadata.uid]
    return failing_new_set(new, machines, since, rolling=snapshot.updating)


def counted_status(
    deployment: MachineDeployment,
    sets: Sequence[MachineSet],
    new: MachineSet | None,
    bounds: Bounds,
    now: datetime,
) -> MachineDeploymentStatus:
    """Return the status with everything but ``Progressing``; ``sets`` are all, oldest first."""
    available = sum(s.status.available_replicas for s in sets)
    preserved = sum(s.status.preserved_failed_replicas for s in sets)
    enough = available >= max(0, bounds.least - preserved)
    old_sets = [s for s in sets if s is not new]
    conditions = with_availability(deployment.status.conditions, enough=enough, now=now)
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
        conditions=with_set_failure(conditions, new, old_sets),
    )


def with_availability(conditions: Conditions, *, enough: bool, now: datetime) -> Conditions:
    """Tell whether as many machines serve as must, ``enough``."""
    if enough:
        status, reason = STATUS_TRUE, REASON_MINIMUM_AVAILABLE
        message = "Deployment has minimum availability."
    else:
        status, reason = STATUS_FALSE, REASON_MINIMUM_UNAVAILABLE
        message = "Deployment does not have minimum availability."
    return with_condition(conditions, CONDITION_AVAILABLE, status, reason, message, now=now)


def with_set_failure(
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


def _failed_machines(sets: Iterable[MachineSet]) -> tuple[MachineSummary, ...] | None:
    return tuple(m for s in sets for m in s.status.failed_machines or ()) or None


def _with(status: MachineDeploymentStatus, conditions: Conditions) -> MachineDeploymentStatus:
    return msgspec.structs.replace(status, conditions=conditions)
