"""The condition ``DrainBlocked`` of a MachineDeployment: drains in its sets do not go on."""

from __future__ import annotations

from datetime import datetime
from itertools import chain

from mcm.api.names import CONDITION_DRAIN_BLOCKED, REASON_DRAINS_HELD_UP, STATUS_TRUE
from mcm.controllers.conditions import without
from mcm.controllers.deployment.conditions import Conditions, with_text
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.replicas.held_up_drains import held_up_drains, why_held_up


def with_held_up_drains(
    conditions: Conditions, snapshot: DeploymentSnapshot, now: datetime
) -> Conditions:
    """Say which machines of its sets do not go, and why; say nothing if none is held up."""
    held = held_up_drains(chain.from_iterable(snapshot.machines.values()))
    if not held:
        return without(conditions, CONDITION_DRAIN_BLOCKED)
    kind, reason = CONDITION_DRAIN_BLOCKED, REASON_DRAINS_HELD_UP
    return with_text(conditions, kind, STATUS_TRUE, reason, why_held_up(held), now=now)
