"""The condition ``Paused``: there while nothing is rolled out because somebody asked for that.

``Progressing`` says so too, but not where it has a missed deadline to tell of.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from mcm.api.names import CONDITION_PAUSED, REASON_PAUSED, STATUS_TRUE
from mcm.controllers.conditions import without
from mcm.controllers.deployment.conditions import Conditions, with_condition

_MESSAGE: Final = (
    "spec.paused: nothing is rolled out; scaling and the replacement of failed machines go on"
)


def with_paused(conditions: Conditions, *, paused: bool, now: datetime) -> Conditions:
    """Set ``Paused``, or remove it."""
    if not paused:
        return without(conditions, CONDITION_PAUSED)
    return with_condition(
        conditions, CONDITION_PAUSED, STATUS_TRUE, REASON_PAUSED, _MESSAGE, now=now
    )
