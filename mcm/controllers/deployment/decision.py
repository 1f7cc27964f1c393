"""What happens to a deployment's sets next: a change of its size, or a step of its strategy.

A change of ``spec.replicas`` comes first (:mod:`.sizes.scaling`), then the strategy
(:mod:`.sizes.rolling`, :mod:`.sizes.recreate`, :mod:`.in_place_update`). Whatever is decided is
checked against :mod:`.sizes.bounds` before anybody acts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import final

from mcm.api.names import STRATEGY_IN_PLACE_UPDATE, STRATEGY_RECREATE
from mcm.api.strategies import is_orchestrated_by_people
from mcm.controllers.deployment.fleet import DeploymentSnapshot, Fleet, Targets
from mcm.controllers.deployment.in_place_update.sizes import after_moves, in_place_step
from mcm.controllers.deployment.sizes import scaling
from mcm.controllers.deployment.sizes.bounds import Bounds, bounds_of, check_rollout, check_scaling
from mcm.controllers.deployment.sizes.recreate import recreate_step
from mcm.controllers.deployment.sizes.rolling import initial_size, rolling_step

NO_NODES = (
    "spec.strategy.type: machines are updated in place through their Nodes, and this manager runs "
    "without a target cluster (--target-kubeconfig=none); use RollingUpdate or Recreate, or take "
    "the template back"
)


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """Sizes to set (by set UID), or a new set to ``create`` with that many replicas.

    ``select`` names machines whose turn it is to be updated in place. Sets ``settling`` get the
    sizes that follow from machines which changed their set. ``rolling`` tells that an update is
    free to go on, so that its progress is to be watched; ``refusal`` why one that is wanted cannot.
    Sets ``withheld`` are to change their size, but not now.
    """

    targets: Targets = field(default_factory=dict)
    create: int | None = None
    rolling: bool = False
    refusal: str = ""
    select: frozenset[str] = frozenset()
    settling: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()

    def without_reductions(self, snapshot: DeploymentSnapshot) -> Decision:
        """Return the part of it that makes no set smaller; the others are ``withheld``."""
        sizes = {s.metadata.uid: s.spec.replicas for s in snapshot.sets}
        growing = {
            uid: size
            for uid, size in self.targets.items()
            if size > sizes[uid] or uid in self.settling
        }
        return replace(self, targets=growing, withheld=frozenset(self.targets.keys() - growing))


def next_step(
    snapshot: DeploymentSnapshot, now: datetime, bounds: Bounds | None = None
) -> Decision:
    """Return the next step for what was seen, within ``bounds``, or else those of its own spec.

    Raises :class:`.OutOfBounds` rather than harm.
    """
    spec = snapshot.deployment.spec
    within = bounds or bounds_of(spec)
    fleet = snapshot.fleet(now)
    if moved := after_moves(fleet):
        return Decision(moved, settling=frozenset(moved), rolling=not spec.paused)
    if snapshot.strategy == STRATEGY_IN_PLACE_UPDATE and not spec.paused:
        return _in_place(snapshot, fleet, within)
    return decide(fleet, within, snapshot.strategy, paused=spec.paused)


def decide(fleet: Fleet, bounds: Bounds, strategy: str, *, paused: bool) -> Decision:
    """Return the next step by replacing machines, or of the size alone.

    Raises :class:`.OutOfBounds` rather than a harmful one.
    """
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


def _scale(fleet: Fleet, bounds: Bounds) -> Decision:
    targets = scaling.sizes(fleet, bounds)
    asked_for = scaling.asked_for(fleet, bounds)
    check_scaling(fleet, targets, bounds, asked_for=asked_for)
    return Decision(targets)


def _in_place(snapshot: DeploymentSnapshot, fleet: Fleet, bounds: Bounds) -> Decision:
    """Act like any deployment where there is nothing to update, or no way to do it."""
    updates = snapshot.in_place
    if updates is None and snapshot.updating:
        return replace(_scale(fleet, bounds), refusal=NO_NODES)
    if fleet.new is None:
        return Decision(create=initial_size(fleet, bounds), rolling=True)
    if updates is None or not snapshot.updating:
        return replace(_scale(fleet, bounds), rolling=True)
    step = in_place_step(
        fleet.new,
        fleet,
        bounds,
        on_the_way=updates.on_the_way,
        selecting=not is_orchestrated_by_people(snapshot.deployment.spec),
    )
    select = frozenset(updates.selectable[: step.select])
    return Decision(step.targets, select=select, rolling=True)
