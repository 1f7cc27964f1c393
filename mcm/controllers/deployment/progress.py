"""What ``Progressing`` says of a deployment: does its update get on, and if not, why.

While paused it is ``Unknown``: nobody watches the progress of an update that must not go on. A
deadline that passed before the pause stays told.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from mcm.api.machine import MachineDeployment, MachineDeploymentStatus, MachineSet
from mcm.api.names import (
    CONDITION_PROGRESSING,
    REASON_DEADLINE_EXCEEDED,
    REASON_FOUND_NEW_SET,
    REASON_NEW_SET_AVAILABLE,
    REASON_NEW_SET_CREATED,
    REASON_PAUSED,
    REASON_RESUMED,
    REASON_SET_CREATE_ERROR,
    REASON_SET_UPDATED,
    STATUS_FALSE,
    STATUS_TRUE,
    STATUS_UNKNOWN,
)
from mcm.controllers.deployment.conditions import (
    Conditions,
    find,
    reason_of,
    with_condition,
    with_text,
    without,
)

REASON_INVALID_SPEC: Final = "InvalidSpec"
"""``Progressing`` is False: the spec cannot be acted on; the message names field and remedy."""
REASON_STRATEGY_NOT_SUPPORTED: Final = "StrategyNotSupported"
"""``Progressing`` is False: an update is wanted, by a strategy that cannot be carried out yet."""

_MARGIN: Final = timedelta(seconds=1)
"""Stored times are whole seconds: looked at this much later, a deadline has certainly passed."""

# Said about a state which, as we are here, is over.
_REFUSALS: Final = frozenset(
    {REASON_INVALID_SPEC, REASON_STRATEGY_NOT_SUPPORTED, REASON_SET_CREATE_ERROR}
)


def without_refusal(conditions: Conditions) -> Conditions:
    """Drop a ``Progressing`` that says why nothing could be done: something can be done now."""
    if reason_of(conditions, CONDITION_PROGRESSING) in _REFUSALS:
        return without(conditions, CONDITION_PROGRESSING)
    return conditions


def refused(conditions: Conditions, reason: str, message: str, now: datetime) -> Conditions:
    """Say why nothing can be done."""
    return with_text(conditions, CONDITION_PROGRESSING, STATUS_FALSE, reason, message, now=now)


def with_new_set(
    conditions: Conditions, new: MachineSet | None, *, created: bool, now: datetime
) -> Conditions:
    """Tell of a new set that was created, or found where nothing was said yet."""
    if new is None:
        return conditions
    name = new.metadata.name
    if created:
        reason, message = REASON_NEW_SET_CREATED, f'Created new machine set "{name}"'
    elif find(conditions, CONDITION_PROGRESSING) is None:
        reason, message = REASON_FOUND_NEW_SET, f'Found new machine set "{name}"'
    else:
        return conditions
    return with_condition(conditions, CONDITION_PROGRESSING, STATUS_TRUE, reason, message, now=now)


def with_pause(conditions: Conditions, *, paused: bool, now: datetime) -> Conditions:
    """Return ``conditions`` after noting that a pause began or ended."""
    reason = reason_of(conditions, CONDITION_PROGRESSING)
    if reason == REASON_DEADLINE_EXCEEDED or paused == (reason == REASON_PAUSED):
        return conditions
    said = (
        (REASON_PAUSED, "Deployment is paused")
        if paused
        else (REASON_RESUMED, "Deployment is resumed")
    )
    return with_condition(conditions, CONDITION_PROGRESSING, STATUS_UNKNOWN, *said, now=now)


def evaluated(
    deployment: MachineDeployment,
    counted: MachineDeploymentStatus,
    new: MachineSet | None,
    now: datetime,
    *,
    hindrance: str = "",
) -> MachineDeploymentStatus:
    """Return ``counted`` with ``Progressing`` judged against the status written before.

    ``hindrance`` is why the update does not get on, if that is known.
    """
    conditions = counted.conditions
    reason = reason_of(conditions, CONDITION_PROGRESSING)
    if reason == REASON_NEW_SET_AVAILABLE and counted.replicas == counted.updated_replicas:
        return counted
    subject = (
        f'MachineSet "{new.metadata.name}"'
        if new
        else f'MachineDeployment "{deployment.metadata.name}"'
    )
    if is_complete(counted, deployment):
        reached = (STATUS_TRUE, REASON_NEW_SET_AVAILABLE)
        text = f"{subject} has successfully progressed."
    elif _got_on(deployment.status, counted):
        reached, text = (STATUS_TRUE, REASON_SET_UPDATED), f"{subject} is progressing."
    elif _is_late(deployment, conditions, now):
        reached = (STATUS_FALSE, REASON_DEADLINE_EXCEEDED)
        text = f"{subject} has timed out progressing{f': {hindrance}' if hindrance else ''}."
    else:
        return counted
    refresh = reached[1] == REASON_SET_UPDATED
    conditions = with_condition(
        conditions, CONDITION_PROGRESSING, *reached, text, now=now, refresh=refresh
    )
    return msgspec.structs.replace(counted, conditions=conditions)


def is_complete(status: MachineDeploymentStatus, deployment: MachineDeployment) -> bool:
    """Tell whether all machines are of the new template, as many as desired, and serve."""
    desired = deployment.spec.replicas
    return (
        status.updated_replicas == desired
        and status.replicas == desired
        and status.available_replicas == desired
        and status.observed_generation >= deployment.metadata.generation
    )


def look_again_at(
    deployment: MachineDeployment, status: MachineDeploymentStatus
) -> datetime | None:
    """Return when the deadline for progress is to be judged, None if none is running."""
    present = find(status.conditions, CONDITION_PROGRESSING)
    seconds = deployment.spec.progress_deadline_seconds
    if seconds is None or present is None or present.last_update_time is None:
        return None
    over = (REASON_NEW_SET_AVAILABLE, REASON_DEADLINE_EXCEEDED)
    if present.reason in over or is_complete(status, deployment):
        return None
    return present.last_update_time + timedelta(seconds=seconds) + _MARGIN


def _got_on(old: MachineDeploymentStatus, new: MachineDeploymentStatus) -> bool:
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _is_late(deployment: MachineDeployment, conditions: Conditions, now: datetime) -> bool:
    present = find(conditions, CONDITION_PROGRESSING)
    seconds = deployment.spec.progress_deadline_seconds
    if seconds is None or present is None or present.last_update_time is None:
        return False
    if present.reason == REASON_NEW_SET_AVAILABLE:
        return False
    if present.reason == REASON_DEADLINE_EXCEEDED:
        return True
    return present.last_update_time + timedelta(seconds=seconds) < now
