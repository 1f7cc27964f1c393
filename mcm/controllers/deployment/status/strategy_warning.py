"""Warns of a strategy whose surge and unavailable both come to 0, so that it allows no step."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import MachineDeploymentSpec
from mcm.api.names import (
    CONDITION_STRATEGY_ADJUSTED,
    REASON_NOTHING_REPLACEABLE,
    STATUS_TRUE,
    STRATEGY_IN_PLACE_UPDATE,
    STRATEGY_RECREATE,
)
from mcm.api.strategies import surge_of, unavailable_of
from mcm.controllers.conditions import without
from mcm.controllers.deployment.conditions import Conditions, with_text


def with_strategy_warning(
    conditions: Conditions, spec: MachineDeploymentSpec, now: datetime, *, of: int | None = None
) -> Conditions:
    """Return ``conditions`` with the warning, or without it once it is mended.

    ``of``: the replicas that percentages are of, if not the deployment's own.
    """
    if of is not None:
        spec = msgspec.structs.replace(spec, replicas=of)
    if not allows_nothing(spec):
        return without(conditions, CONDITION_STRATEGY_ADJUSTED)
    return with_text(
        conditions,
        CONDITION_STRATEGY_ADJUSTED,
        STATUS_TRUE,
        REASON_NOTHING_REPLACEABLE,
        warning_of(spec),
        now=now,
    )


def allows_nothing(spec: MachineDeploymentSpec) -> bool:
    """Tell whether the numbers of the spec, a valid one, leave no machine that may be replaced."""
    if spec.replicas <= 0 or defaulted_strategy(spec).type == STRATEGY_RECREATE:
        return False
    return surge_of(spec) == 0 and unavailable_of(spec) == 0


def warning_of(spec: MachineDeploymentSpec) -> str:
    """Name both fields, what they say, and what is done."""
    strategy = defaulted_strategy(spec)
    in_place = strategy.type == STRATEGY_IN_PLACE_UPDATE
    name, block = (
        ("inPlaceUpdate", strategy.in_place_update)
        if in_place
        else ("rollingUpdate", strategy.rolling_update)
    )
    surge, unavailable = (block.max_surge, block.max_unavailable) if block else (0, 0)
    return (
        f"spec.strategy.{name}: maxSurge ({surge}) and maxUnavailable ({unavailable}) both come to "
        "0 machines, so that none could ever be replaced; maxUnavailable counts as 1 until one of "
        "them is raised"
    )
