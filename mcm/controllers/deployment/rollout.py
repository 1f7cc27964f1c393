"""What happens to a deployment's sets next, and how far an update may go in one step.

A change of ``spec.replicas`` comes first (:mod:`.scaling`), then the strategy. A step of a rolling
update either grows the new set or shrinks old ones. Both bounds hold at every moment, whatever the
order in which sets and machines follow: never more machines than ``bounds.most``, those on their
way out included, and never fewer that serve than ``bounds.least``, if there were as many before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import final

from mcm.api.names import STRATEGY_IN_PLACE_UPDATE, STRATEGY_RECREATE
from mcm.controllers.deployment import scaling
from mcm.controllers.deployment.bounds import (
    Bounds,
    bounds_of,
    check_rollout,
    check_scaling,
    must_serve,
    room,
)
from mcm.controllers.deployment.fleet import DeploymentSnapshot, Fleet, SetState, Targets


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


def next_step(snapshot: DeploymentSnapshot, now: datetime) -> Decision:
    """Return the next step for what was seen. Raises :class:`.OutOfBounds` rather than harm."""
    spec = snapshot.deployment.spec
    bounds = bounds_of(spec)
    return decide(snapshot.fleet(now), bounds, snapshot.strategy, paused=spec.paused)


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


# ---- rolling update ------------------------------------------------------------------------------


def initial_size(fleet: Fleet, bounds: Bounds) -> int:
    """The size with which a new set begins."""
    return min(bounds.desired, room(fleet, bounds))


def rolling_step(new: SetState, fleet: Fleet, bounds: Bounds) -> Targets:
    """Return the next step; empty if the update is done, or has to wait for machines."""
    if new.replicas > bounds.desired:
        return {new.uid: bounds.desired}
    growth = min(bounds.desired - new.replicas, room(fleet, bounds))
    if growth > 0:
        return {new.uid: new.replicas + growth}
    return _shrink(new, fleet, bounds)


def _shrink(new: SetState, fleet: Fleet, bounds: Bounds) -> Targets:
    """Take from the old sets, oldest first: before all else machines that do not serve."""
    budget = _budget(new, fleet, bounds)
    spare = fleet.guaranteed() - must_serve(fleet, bounds)
    targets = {s.uid: s.replicas for s in fleet.old}
    for harmless in (True, False):
        for state in fleet.old:
            before = targets[state.uid]
            after = state.reduced(before, budget, losing=0 if harmless else spare)
            targets[state.uid] = after
            spare -= state.guaranteed(before) - state.guaranteed(after)
            budget -= before - after
    return {s.uid: targets[s.uid] for s in fleet.old if targets[s.uid] < s.replicas}


def _budget(new: SetState, fleet: Fleet, bounds: Bounds) -> int:
    """How many old replicas may go. New machines that do not serve yet replace nothing, so that old
    ones which merely cannot be reached are not swept away before the new template has proved
    itself."""
    not_yet = max(0, new.replicas - new.available - new.preserved)
    return fleet.replicas() - bounds.least - not_yet


# ---- recreate ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class RecreateStep:
    """Sizes to set, or the size of a new set to create (None: create none), or neither: wait."""

    targets: Targets = field(default_factory=dict)
    create: int | None = None


def recreate_step(fleet: Fleet, bounds: Bounds) -> RecreateStep:
    """Return the next step; an empty one if machines are still leaving, or all is done."""
    to_empty = {s.uid: 0 for s in fleet.old if s.replicas > 0}
    if to_empty:
        return RecreateStep(to_empty)
    if any(s.machines or s.reported for s in (*fleet.old, *fleet.deleted)):
        return RecreateStep()
    if fleet.new is None:
        return RecreateStep(create=bounds.desired)
    return RecreateStep(scaling.sizes(fleet, bounds))
