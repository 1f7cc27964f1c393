"""Sets any condition of a deployment, with its update and transition times."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

import msgspec

from mcm.api.machine import MachineDeploymentCondition
from mcm.api.timestamps import whole_seconds
from mcm.controllers.conditions import find

Conditions: TypeAlias = tuple[MachineDeploymentCondition, ...]


def with_condition(
    conditions: Conditions,
    kind: str,
    status: str,
    reason: str,
    message: str,
    *,
    now: datetime,
    refresh: bool = False,
) -> Conditions:
    """Set a condition, in its place or at the end.

    With status and reason as they are it stays untouched, unless ``refresh`` asks for a new update
    time and message. The transition time moves with the status only.
    """
    present, moment = find(conditions, kind), whole_seconds(now)
    if present and (present.status, present.reason) == (status, reason) and not refresh:
        return conditions
    same_status = present is not None and present.status == status
    wanted = MachineDeploymentCondition(
        type=kind,
        status=status,
        last_update_time=moment,
        last_transition_time=present.last_transition_time if same_status and present else moment,
        reason=reason,
        message=message,
    )
    if present is None:
        return (*conditions, wanted)
    return tuple(wanted if c is present else c for c in conditions)


def with_text(
    conditions: Conditions, kind: str, status: str, reason: str, message: str, *, now: datetime
) -> Conditions:
    """Set a condition whose message matters: another message is news."""
    present = find(conditions, kind)
    changed = present is not None and present.message != message
    return with_condition(conditions, kind, status, reason, message, now=now, refresh=changed)


def with_copy(conditions: Conditions, wanted: MachineDeploymentCondition) -> Conditions:
    """Take over a condition of another object, unless what is there says the same."""
    present = find(conditions, wanted.type)
    if present is None:
        return (*conditions, wanted)
    said, to_say = ((c.status, c.reason, c.message) for c in (present, wanted))
    if said == to_say:
        return conditions
    if present.status == wanted.status:
        kept = present.last_transition_time
        wanted = msgspec.structs.replace(wanted, last_transition_time=kept)
    return tuple(wanted if c is present else c for c in conditions)
