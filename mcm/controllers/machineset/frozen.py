"""The condition ``Frozen`` of a MachineSet: it follows from the label, and says what it keeps away.

The label is written by :mod:`mcm.controllers.overshooting` (or by anybody else).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mcm.api.machine import Machine, MachineSet
from mcm.api.names import CONDITION_FROZEN, REASON_OVERSHOOTING, STATUS_TRUE
from mcm.controllers.conditions import find, without
from mcm.controllers.machineset.conditions import Conditions, with_condition
from mcm.controllers.overshooting.decision import is_frozen
from mcm.controllers.overshooting.explanation import Situation, why_frozen
from mcm.controllers.overshooting.limits import Limits


def with_frozen(
    conditions: Conditions,
    machine_set: MachineSet,
    machines: Iterable[Machine],
    limits: Limits | None,
    now: datetime,
) -> Conditions:
    """Set the condition of a frozen set, which owns ``machines``; take it off any other.

    What a set that is being deleted says stays as it is: it makes no machines in any case.
    """
    if machine_set.metadata.deletion_timestamp is not None:
        return conditions
    if not is_frozen(machine_set.metadata):
        return without(conditions, CONDITION_FROZEN)
    present = find(conditions, CONDITION_FROZEN)
    since = present.last_transition_time if present and present.status == STATUS_TRUE else None
    message = why_frozen(Situation.of(machine_set, machines, limits), since or now)
    return with_condition(
        conditions, CONDITION_FROZEN, STATUS_TRUE, REASON_OVERSHOOTING, message, now=now
    )
