"""The condition ``Frozen`` of a MachineDeployment: it follows from the labels of its sets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mcm.api.names import (
    CONDITION_FROZEN,
    REASON_DEPLOYMENT_STATE_SYNC,
    REASON_OVERSHOOTING,
    STATUS_TRUE,
)
from mcm.controllers.conditions import without
from mcm.controllers.deployment.conditions import Conditions, with_text
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.overshooting.deployment_freeze import frozen_sets
from mcm.controllers.overshooting.explanation import Situation, stands_still, why_sets_frozen
from mcm.controllers.overshooting.limits import Limits


def with_frozen(
    conditions: Conditions, snapshot: DeploymentSnapshot, limits: Limits | None, now: datetime
) -> Conditions:
    """Say which sets are frozen and what ends it; say nothing if none is."""
    sets = _situations(snapshot, limits)
    if not sets:
        return without(conditions, CONDITION_FROZEN)
    overshooting = any(limits and s.machines > limits.unfreeze_at for s in sets)
    reason = REASON_OVERSHOOTING if overshooting else REASON_DEPLOYMENT_STATE_SYNC
    message = why_sets_frozen(sets)
    return with_text(conditions, CONDITION_FROZEN, STATUS_TRUE, reason, message, now=now)


def hindrance(snapshot: DeploymentSnapshot, limits: Limits | None) -> str:
    """Return why an update does not get on, if that is since its new set is frozen; else empty."""
    new = snapshot.new
    if new is None:
        return ""
    of_new = [s for s in _situations(snapshot, limits) if s.name == new.metadata.name]
    return "".join(stands_still(s) for s in of_new if s.lacks)


def _situations(snapshot: DeploymentSnapshot, limits: Limits | None) -> Sequence[Situation]:
    return [
        Situation.of(s, snapshot.machines[s.metadata.uid], limits)
        for s in frozen_sets(snapshot.sets)
    ]
