"""A deployment's strategy, as it will act: with its defaults."""

from __future__ import annotations

from mcm.api import names
from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import InPlaceUpdate, MachineDeployment, RollingUpdate
from mcm.api.validation.counts import share_errors
from mcm.api.validation.field_errors import Errors, FieldError, listed, required

_STRATEGIES = (
    names.STRATEGY_IN_PLACE_UPDATE,
    names.STRATEGY_RECREATE,
    names.STRATEGY_ROLLING_UPDATE,
)
_ORCHESTRATIONS = (names.ORCHESTRATION_AUTO, names.ORCHESTRATION_MANUAL)


def strategy_errors(deployment: MachineDeployment) -> Errors:
    strategy, replicas = defaulted_strategy(deployment.spec), deployment.spec.replicas
    match strategy.type:
        case names.STRATEGY_RECREATE:
            return
        case names.STRATEGY_ROLLING_UPDATE:
            yield from _block(strategy.rolling_update, "spec.strategy.rollingUpdate", replicas)
        case names.STRATEGY_IN_PLACE_UPDATE:
            yield from _block(strategy.in_place_update, "spec.strategy.inPlaceUpdate", replicas)
            yield from _orchestration(strategy.in_place_update)
        case unknown:
            detail = f"strategy type must be one of {listed(_STRATEGIES)}"
            yield FieldError("spec.strategy.type", detail, value=unknown)


def _block(block: RollingUpdate | InPlaceUpdate | None, path: str, replicas: int) -> Errors:
    if block is None:
        yield required(path, "must say maxSurge and maxUnavailable")
        return
    yield from share_errors(block.max_unavailable, f"{path}.maxUnavailable", replicas)
    yield from share_errors(block.max_surge, f"{path}.maxSurge", replicas)


def _orchestration(block: InPlaceUpdate | None) -> Errors:
    if block is not None and block.orchestration_type not in _ORCHESTRATIONS:
        field = "spec.strategy.inPlaceUpdate.orchestrationType"
        detail = "orchestrationType must be either Auto or Manual"
        yield FieldError(field, detail, value=block.orchestration_type)
