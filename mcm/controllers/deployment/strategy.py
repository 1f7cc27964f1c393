"""What to do with a deployment's sets next: pause, scaling and strategy weighed together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from mcm.api.names import STRATEGY_IN_PLACE_UPDATE, STRATEGY_RECREATE
from mcm.controllers.deployment import promises, recreate, rollout, scaling
from mcm.controllers.deployment.fleet import Fleet, Targets
from mcm.controllers.deployment.limits import Limits


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """Sizes to set (by set UID), or a new set to ``create`` with that many replicas.

    ``rolling`` tells that an update is free to go on, so that its progress is to be watched;
    ``unsupported`` that one is wanted which this version cannot do.
    """

    targets: Targets = field(default_factory=dict)
    create: int | None = None
    rolling: bool = False
    unsupported: bool = False


def decide(fleet: Fleet, limits: Limits, strategy: str, *, paused: bool) -> Decision:
    """Return the next step. Raises :class:`.promises.BrokenPromise` rather than a harmful one."""
    if strategy == STRATEGY_IN_PLACE_UPDATE and not paused:
        return _without_update(fleet, limits)
    if strategy == STRATEGY_RECREATE and not paused:
        step = recreate.plan(fleet, limits)
        return Decision(step.targets, create=step.create, rolling=True)
    if paused or scaling.is_due(fleet, limits):
        return _scale(fleet, limits)
    if fleet.new is None:
        return Decision(create=rollout.initial_size(fleet, limits), rolling=True)
    targets = rollout.plan(fleet.new, fleet, limits)
    promises.check_rollout(fleet, targets, limits)
    return Decision(targets, rolling=True)


def _scale(fleet: Fleet, limits: Limits, *, unsupported: bool = False) -> Decision:
    targets = scaling.plan(fleet, limits)
    asked_for = scaling.asked_for(fleet, limits)
    promises.check_scaling(fleet, targets, limits, asked_for=asked_for)
    return Decision(targets, unsupported=unsupported)


def _without_update(fleet: Fleet, limits: Limits) -> Decision:
    """Act like any deployment as long as there is nothing to update; after that, only scale."""
    if any(s.replicas > 0 for s in fleet.old):
        return _scale(fleet, limits, unsupported=True)
    if fleet.new is None:
        return Decision(create=limits.desired, rolling=True)
    decision = _scale(fleet, limits)
    return Decision(decision.targets, rolling=True)
