"""Sets any condition of a MachineSet; a set's have no update time."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from mcm.api.machine import MachineSetCondition
from mcm.api.timestamps import whole_seconds
from mcm.controllers.conditions import find

Conditions: TypeAlias = tuple[MachineSetCondition, ...]


def with_condition(
    conditions: Conditions, kind: str, status: str, reason: str, message: str, *, now: datetime
) -> Conditions:
    """Set a condition, in its place or at the end; untouched if it says the same already.

    The transition time moves with the status only: a new reason or message of a state that lasts
    does not make it younger.
    """
    present = find(conditions, kind)
    if present and (present.status, present.reason, present.message) == (status, reason, message):
        return conditions
    since = present.last_transition_time if present and present.status == status else None
    wanted = MachineSetCondition(
        type=kind,
        status=status,
        last_transition_time=since or whole_seconds(now),
        reason=reason,
        message=message,
    )
    if present is None:
        return (*conditions, wanted)
    return tuple(wanted if c is present else c for c in conditions)
