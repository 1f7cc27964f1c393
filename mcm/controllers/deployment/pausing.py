"""What the condition ``Progressing`` says about a pause.

A pause is ``Unknown``: nobody watches the progress of an update that must not go on. A deadline
that passed before the pause stays told.
"""

from __future__ import annotations

from datetime import datetime

from mcm.api.names import (
    CONDITION_PROGRESSING,
    REASON_DEADLINE_EXCEEDED,
    REASON_PAUSED,
    REASON_RESUMED,
    STATUS_UNKNOWN,
)
from mcm.controllers.deployment.conditions import Conditions, reason_of, with_condition


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
