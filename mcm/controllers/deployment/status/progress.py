"""What ``Progressing`` says of a deployment: does its update get on, and if not, why.

While paused it is ``Unknown``: nobody watches the progress of an update that must not go on. A
deadline that passed before the pause stays told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, final

import msgspec

from mcm.api.machine import Machine, MachineDeployment, MachineDeploymentStatus, MachineSet
from mcm.api.names import (
    CONDITION_PROGRESSING,
    REASON_DEADLINE_EXCEEDED,
    REASON_FOUND_NEW_SET,
    REASON_INVALID_SPEC,
    REASON_NEW_MACHINES_FAILING,
    REASON_NEW_SET_AVAILABLE,
    REASON_NEW_SET_CREATED,
    REASON_NO_TARGET_CLUSTER,
    REASON_PAUSED,
    REASON_RESUMED,
    REASON_SET_CREATE_ERROR,
    REASON_SET_UPDATED,
    STATUS_FALSE,
    STATUS_TRUE,
    STATUS_UNKNOWN,
)
from mcm.api.timestamps import rfc3339
from mcm.controllers.conditions import find, reason_of, without
from mcm.controllers.deployment.conditions import Conditions, with_condition, with_text
from mcm.controllers.deployment.startup_failures import HELD, UNTIL, startup_failures

_LONGEST_QUOTE: Final = 500
_MARGIN: Final = timedelta(seconds=1)
"""Stored times are whole seconds: looked at this much later, a deadline has certainly passed."""


@final
@dataclass(frozen=True, slots=True)
class Failing:
    """Since when the new set cannot get its machines up, and what to say of it."""

    since: datetime
    text: str


# Said about a state which, as we are here, is over.
_REFUSALS: Final = frozenset(
    {REASON_INVALID_SPEC, REASON_NO_TARGET_CLUSTER, REASON_SET_CREATE_ERROR}
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
    failing: Failing | None = None,
) -> MachineDeploymentStatus:
    """Return ``counted`` with ``Progressing`` judged against the status written before.

    ``hindrance`` is why the update does not get on, if that is known; ``failing``, that the new set
    cannot get its machines up.
    """
    conditions = counted.conditions
    reason = reason_of(conditions, CONDITION_PROGRESSING)
    over = reason == REASON_NEW_SET_AVAILABLE and counted.replicas == counted.updated_replicas
    if over and failing is None:
        return counted
    subject = (
        f'MachineSet "{new.metadata.name}"'
        if new
        else f'MachineDeployment "{deployment.metadata.name}"'
    )
    if is_complete(counted, deployment):
        reached = (STATUS_TRUE, REASON_NEW_SET_AVAILABLE)
        text = f"{subject} has successfully progressed."
    elif _is_late(deployment, conditions, now) and (
        failing is not None or not _got_on(deployment.status, counted)
    ):
        reached = (STATUS_FALSE, REASON_DEADLINE_EXCEEDED)
        text = f"{subject} has timed out progressing{f': {hindrance}' if hindrance else ''}."
        if failing is not None:
            return _told(counted, REASON_DEADLINE_EXCEEDED, f"{text} {failing.text}", failing, now)
    elif failing is not None:
        return _told(counted, REASON_NEW_MACHINES_FAILING, failing.text, failing, now)
    elif reason == REASON_NEW_MACHINES_FAILING or _got_on(deployment.status, counted):
        reached, text = (STATUS_TRUE, REASON_SET_UPDATED), f"{subject} is progressing."
    else:
        return counted
    refresh = reached[1] == REASON_SET_UPDATED
    conditions = with_condition(
        conditions, CONDITION_PROGRESSING, *reached, text, now=now, refresh=refresh
    )
    return msgspec.structs.replace(counted, conditions=conditions)


def failing_new_set(
    new: MachineSet, machines: Sequence[Machine], since: datetime, *, rolling: bool
) -> Failing:
    """Put into words that the machines of the new set fail to come up. ``rolling``: old machines
    that serve are left alone for that."""
    failures = startup_failures(new, machines)
    said = ""
    if failures:
        first = failures[0]
        text = first.text.strip()[:_LONGEST_QUOTE].rstrip(". ") or "it says no reason"
        said = f", {first.machine} with {first.code or 'no error code'}: {text}"
    held = f"{HELD} " if rolling else ""
    return Failing(
        since=since,
        text=(
            f'Machines of MachineSet "{new.metadata.name}" fail to come up since '
            f"{rfc3339(since)}{said}. {held}{UNTIL}"
        ),
    )


def _told(
    counted: MachineDeploymentStatus, reason: str, text: str, failing: Failing, now: datetime
) -> MachineDeploymentStatus:
    """Say that the new set fails. The update time stays that of the last progress, from which the
    deadline counts; the transition time is that of the failure."""
    present = find(counted.conditions, CONDITION_PROGRESSING)
    if present is not None and (present.status, present.reason, present.message) == (
        STATUS_FALSE,
        reason,
        text,
    ):
        return counted
    conditions = with_text(
        counted.conditions, CONDITION_PROGRESSING, STATUS_FALSE, reason, text, now=now
    )
    said = find(conditions, CONDITION_PROGRESSING)
    if said is None:
        return counted
    kept = msgspec.structs.replace(
        said,
        last_update_time=present.last_update_time if present else said.last_update_time,
        last_transition_time=failing.since,
    )
    replaced = tuple(kept if c is said else c for c in conditions)
    return msgspec.structs.replace(counted, conditions=replaced)


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
