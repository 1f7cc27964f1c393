"""A step of a rolling update: the new set grows, or old ones shrink, never both.

Both bounds hold at every moment, whatever the order in which sets and machines follow: never more
machines than ``bounds.most``, those on their way out included, and never fewer that serve than
``bounds.least``, if there were as many before.
"""

from __future__ import annotations

from mcm.controllers.deployment.fleet import Fleet, SetState, Targets
from mcm.controllers.deployment.sizes.bounds import Bounds, floor_of, must_serve, room
from mcm.controllers.deployment.sizes.shrinking import shrunk


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
    """Take from the old sets, oldest first: before all else machines that never served, then those
    that do not serve, then those that do."""
    targets = _without_useless(new, fleet, bounds)
    budget = _budget(new, fleet, bounds) - (fleet.replicas() - fleet.replicas(targets))
    spare = fleet.guaranteed() - must_serve(fleet, bounds)
    targets = shrunk(fleet.old, targets, budget, spare=spare)
    return {s.uid: targets[s.uid] for s in fleet.old if targets[s.uid] < s.replicas}


def _without_useless(new: SetState, fleet: Fleet, bounds: Bounds) -> dict[str, int]:
    """Return the old sets' sizes without machines that never joined.

    Of a set that is not known to work they go whatever the new one does, or nothing would ever lead
    out of a rollout that was given up while machines of the set it returns to are unwell. Those of
    a set that works wait until the new machines have joined: they may be worth more.
    """
    targets = {s.uid: s.replicas for s in fleet.old}
    surplus = fleet.replicas() - bounds.least
    owed = new.missing + floor_of(fleet, bounds) - bounds.least
    for state in fleet.old:
        allowed = surplus - (owed if state.proven else 0)
        taken = max(0, min(allowed, state.useless(state.replicas), state.replicas))
        targets[state.uid] -= taken
        surplus -= taken
    return targets


def _budget(new: SetState, fleet: Fleet, bounds: Bounds) -> int:
    """How many old replicas may go. New machines that do not serve yet replace nothing, so that old
    ones which merely cannot be reached are not swept away before the new template has proved
    itself."""
    not_yet = max(0, new.replicas - new.available - new.preserved)
    return fleet.replicas() - floor_of(fleet, bounds) - not_yet
