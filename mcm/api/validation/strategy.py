"""A deployment's strategy, as it will act: with its defaults."""

from __future__ import annotations

from typing import Final

from mcm.api import names
from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import DeploymentStrategy, InPlaceUpdate, MachineDeployment, RollingUpdate
from mcm.api.validation.counts import leave_no_room, share_findings
from mcm.api.validation.field_errors import (
    FieldError,
    Findings,
    listed,
    required,
    shortened,
    warning,
)

_STRATEGIES: Final = (
    names.STRATEGY_IN_PLACE_UPDATE,
    names.STRATEGY_RECREATE,
    names.STRATEGY_ROLLING_UPDATE,
)
_ORCHESTRATIONS: Final = (names.ORCHESTRATION_AUTO, names.ORCHESTRATION_MANUAL)
_ROLLING: Final = "spec.strategy.rollingUpdate"
_IN_PLACE: Final = "spec.strategy.inPlaceUpdate"


def strategy_findings(deployment: MachineDeployment) -> Findings:
    strategy, replicas = defaulted_strategy(deployment.spec), deployment.spec.replicas
    match strategy.type:
        case names.STRATEGY_RECREATE:
            pass
        case names.STRATEGY_ROLLING_UPDATE:
            yield from _block(strategy.rolling_update, _ROLLING, replicas)
        case names.STRATEGY_IN_PLACE_UPDATE:
            yield from _block(strategy.in_place_update, _IN_PLACE, replicas)
            yield from _orchestration(strategy.in_place_update)
        case unknown:
            detail = f"strategy type must be one of {listed(_STRATEGIES)}"
            yield FieldError("spec.strategy.type", detail, value=shortened(unknown))
            return
    yield from _unused(strategy)


def _block(block: RollingUpdate | InPlaceUpdate | None, path: str, replicas: int) -> Findings:
    if block is None:
        yield required(path, "must say maxSurge and maxUnavailable")
        return
    yield from share_findings(block.max_unavailable, f"{path}.maxUnavailable", replicas)
    yield from share_findings(block.max_surge, f"{path}.maxSurge", replicas)
    if leave_no_room(block.max_surge, block.max_unavailable, replicas):
        detail = f"it and maxSurge are none of {replicas} machines; it acts as 1"
        yield warning(f"{path}.maxUnavailable", detail, value=block.max_unavailable)


def _orchestration(block: InPlaceUpdate | None) -> Findings:
    if block is not None and block.orchestration_type not in _ORCHESTRATIONS:
        detail = "orchestrationType must be either Auto or Manual"
        shown = shortened(block.orchestration_type)
        yield FieldError(f"{_IN_PLACE}.orchestrationType", detail, value=shown)


def _unused(strategy: DeploymentStrategy) -> Findings:
    detail = f"is not used with the strategy {strategy.type}"
    if strategy.rolling_update is not None and strategy.type != names.STRATEGY_ROLLING_UPDATE:
        yield warning(_ROLLING, detail)
    if strategy.in_place_update is not None and strategy.type != names.STRATEGY_IN_PLACE_UPDATE:
        yield warning(_IN_PLACE, detail)
