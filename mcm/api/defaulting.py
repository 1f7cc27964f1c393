"""Defaults that apply at use: the CRDs have none, so objects stay as their authors wrote them."""

from __future__ import annotations

import msgspec

from mcm.api.machine import DeploymentStrategy, MachineDeploymentSpec, RollingUpdate
from mcm.api.names import STRATEGY_ROLLING_UPDATE

DEFAULT_ROLLING_UPDATE = RollingUpdate(max_unavailable=1, max_surge=1)


def defaulted_strategy(spec: MachineDeploymentSpec) -> DeploymentStrategy:
    """Return the strategy to act by.

    An empty type means RollingUpdate, and a rolling update without its block replaces one machine
    at a time with one more on top. The Go original refuses both. A block which is there must say
    both of its numbers (:mod:`mcm.api.validation`): guessing the other could take machines away.
    """
    strategy = spec.strategy
    kind = strategy.type or STRATEGY_ROLLING_UPDATE
    block = strategy.rolling_update
    if kind == STRATEGY_ROLLING_UPDATE and block is None:
        block = DEFAULT_ROLLING_UPDATE
    return msgspec.structs.replace(strategy, type=kind, rolling_update=block)
