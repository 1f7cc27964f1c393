"""The condition ``DrainBlocked`` of a MachineSet: drains of its machines do not go on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mcm.api.machine import Machine
from mcm.api.names import CONDITION_DRAIN_BLOCKED, REASON_DRAINS_HELD_UP, STATUS_TRUE
from mcm.controllers.conditions import without
from mcm.controllers.machineset.conditions import Conditions, with_condition
from mcm.controllers.replicas.held_up_drains import held_up_drains, why_held_up


def with_held_up_drains(
    conditions: Conditions, machines: Iterable[Machine], now: datetime
) -> Conditions:
    """Say which of ``machines`` do not go, and why; say nothing if none is held up."""
    held = held_up_drains(machines)
    if not held:
        return without(conditions, CONDITION_DRAIN_BLOCKED)
    kind, reason = CONDITION_DRAIN_BLOCKED, REASON_DRAINS_HELD_UP
    return with_condition(conditions, kind, STATUS_TRUE, reason, why_held_up(held), now=now)
