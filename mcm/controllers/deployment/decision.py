"""What happens to a deployment's sets next: a change of its size, or a step of its strategy.

A change of ``spec.replicas`` comes first (:mod:`.scaling`), then the strategy (:mod:`.rolling`,
:mod:`.recreate`). Whatever is decided is checked against :mod:`.bounds` before anybody acts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import final

from mcm.api.names import STRATEGY_IN_PLACE_UPDATE, STRATEGY_RECREATE
from mcm.controllers.deployment import scaling
from mcm.controllers.deployment.bounds import Bounds, bounds_of, check_rollout, check_scaling
from mcm.controllers.deployment.fleet import DeploymentSnapshot, Fleet, Targets
from mcm.controllers.deployment.recreate import recreate_step
from mcm.controllers.deployment.rolling import initial_size, rolling_step


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """Sizes to set (by set UID), or a new set to ``create`` with that many replicas.

    ``rolling`` tells that an update is free to go on, so that its progress is to be watched;
    ``unsupported`` that one is wanted which this version cannot do. Sets ``withheld`` are to change
    their size, but not now.
    """

    targets: Targets = field(default_factory=dict)
    create: int | None = None
    rolling: bool = False
    unsupported: bool = False
    withheld: frozenset[str] = frozenset()

    def without_reductions(self, snapshot: DeploymentSnapshot) -> Decision:
        """Return the part of it that makes no set smaller; the others are ``withheld``."""
        sizes = {s.metadata.uid: s.spec.replicas for s in snapshot.sets}
        growing = {uid: size for uid, size in self.targets.items() if size > sizes[uid]}
        return replace(self, targets=growing, withheld=frozenset(self.targets.keys() - growing))


def next_step(
    snapshot: DeploymentSnapshot, now: datetime, bounds: Bounds | None = None
) -> Decision:
    """Return the next step for what was seen, within ``bounds``, or else those of its own spec.

    Raises :class:`.OutOfBounds` rather than harm.
    """
    spec = snapshot.deployment.spec
    within = bounds or bounds_of(spec)
    return decide(snapshot.fleet(now), within, snapshot.strategy, paused=spec.paused)


def decide(fleet: Fleet, bounds: Bounds, strategy: str, *, paused: bool) -> Decision:
    """Return the next step. Raises :class:`.OutOfBounds` rather than a harmful one."""
    if strategy == STRATEGY_IN_PLACE_UPDATE and not paused:
        return _without_update(fleet, bounds)
    if strategy == STRATEGY_RECREATE and not paused:
        step = recreate_step(fleet, bounds)
        return Decision(step.targets, create=step.create, rolling=True)
    if paused or scaling.is_due(fleet, bounds):
        return _scale(fleet, bounds)
    if fleet.new is None:
        return Decision(create=initial_size(fleet, bounds), rolling=True)
    targets = rolling_step(fleet.new, fleet, bounds)
    check_rollout(fleet, targets, bounds)
    return Decision(targets, rolling=True)


def _scale(fleet: Fleet, bounds: Bounds, *, unsupported: bool = False) -> Decision:
    targets = scaling.sizes(fleet, bounds)
    asked_for = scaling.asked_for(fleet, bounds)
    check_scaling(fleet, targets, bounds, asked_for=asked_for)
    return Decision(targets, unsupported=unsupported)


def _without_update(fleet: Fleet, bounds: Bounds) -> Decision:
    """Act like any deployment as long as there is nothing to update; after that, only scale."""
    if any(s.replicas > 0 for s in fleet.old):
        return _scale(fleet, bounds, unsupported=True)
    if fleet.new is None:
        return Decision(create=bounds.desired, rolling=True)
    decision = _scale(fleet, bounds)
    return Decision(decision.targets, rolling=True)
