"""The status that one pass leaves behind."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mcm.api.machine import MachineDeploymentStatus
from mcm.controllers.deployment.conditions import REASON_STRATEGY_NOT_SUPPORTED, Conditions
from mcm.controllers.deployment.pausing import with_pause
from mcm.controllers.deployment.progress import (
    evaluated,
    refused,
    with_new_set,
    without_refusal,
)
from mcm.controllers.deployment.status import counted_status
from mcm.controllers.deployment.strategy import Decision
from mcm.controllers.deployment.world import World

NOT_SUPPORTED = (
    "spec.strategy.type: machines cannot be updated in place yet, so the machines of the former "
    "template stay as they are; use RollingUpdate or Recreate, or take the template back"
)


def status_after(
    world: World, decision: Decision, now: datetime, *, created: bool
) -> MachineDeploymentStatus:
    """Return the status to be written; it equals the present one if there is nothing to say.

    ``created``: the new set was made in this pass.
    """
    deployment, conditions = world.deployment, world.deployment.status.conditions
    if decision.unsupported:
        conditions = refused(conditions, REASON_STRATEGY_NOT_SUPPORTED, NOT_SUPPORTED, now)
    else:
        conditions = without_refusal(conditions)
    conditions = with_pause(conditions, paused=deployment.spec.paused, now=now)
    judged = _with(deployment.status, conditions)
    counted = counted_status(
        msgspec.structs.replace(deployment, status=judged), world.sets, world.new, world.limits, now
    )
    conditions = with_new_set(counted.conditions, world.new, created=created, now=now)
    counted = _with(counted, conditions)
    return evaluated(deployment, counted, world.new, now) if decision.rolling else counted


def _with(status: MachineDeploymentStatus, conditions: Conditions) -> MachineDeploymentStatus:
    return msgspec.structs.replace(status, conditions=conditions)
