"""What a deployment's strategy says in numbers of machines, its percentages resolved.

Percentages are of ``spec.replicas``, rounded up for surge and down for unavailable; both of a spec
that is valid (:mod:`mcm.api.validation`).
"""

from __future__ import annotations

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import InPlaceUpdate, MachineDeploymentSpec, RollingUpdate
from mcm.api.names import (
    ORCHESTRATION_MANUAL,
    STRATEGY_IN_PLACE_UPDATE,
    STRATEGY_ROLLING_UPDATE,
)


def surge_of(spec: MachineDeploymentSpec) -> int:
    """Return how many machines more than desired there may be for a while; none with Recreate."""
    block = _block(spec)
    return _share(block.max_surge, spec.replicas, round_up=True) if block else 0


def unavailable_of(spec: MachineDeploymentSpec) -> int:
    """Return how many machines fewer than desired may serve for a while; none with Recreate,
    which takes all of them at once and asks no number."""
    block = _block(spec)
    return _share(block.max_unavailable, spec.replicas, round_up=False) if block else 0


def is_orchestrated_by_people(spec: MachineDeploymentSpec) -> bool:
    """Tell whether machines are updated in place when a person says so, one by one."""
    strategy = defaulted_strategy(spec)
    block = strategy.in_place_update if strategy.type == STRATEGY_IN_PLACE_UPDATE else None
    return block is not None and block.orchestration_type == ORCHESTRATION_MANUAL


def _block(spec: MachineDeploymentSpec) -> RollingUpdate | InPlaceUpdate | None:
    strategy = defaulted_strategy(spec)
    if strategy.type == STRATEGY_ROLLING_UPDATE:
        return strategy.rolling_update
    return strategy.in_place_update if strategy.type == STRATEGY_IN_PLACE_UPDATE else None


def _share(value: int | str | None, of: int, *, round_up: bool) -> int:
    if isinstance(value, int):
        return value
    hundredths = int((value or "0%").removesuffix("%")) * max(0, of)
    return -(-hundredths // 100) if round_up else hundredths // 100
