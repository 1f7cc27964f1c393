"""A step of strategy Recreate: all old machines go, and only then are new ones made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from mcm.controllers.deployment.fleet import Fleet, Targets
from mcm.controllers.deployment.sizes import scaling
from mcm.controllers.deployment.sizes.bounds import Bounds


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
