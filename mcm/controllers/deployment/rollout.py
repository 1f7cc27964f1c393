"""How far a rolling update may go in one step.

Two promises hold at every moment, whatever the order in which sets and machines follow: never more
machines than ``limits.most``, those on their way out included, and never fewer that serve than
``limits.least``, if there were as many before. A step either grows the new set or shrinks old ones.
"""

from __future__ import annotations

from typing import Final

from mcm.controllers.deployment.fleet import Fleet, SetState, Targets
from mcm.controllers.deployment.limits import Limits

NOTHING: Final[Targets] = {}


def room(fleet: Fleet, limits: Limits) -> int:
    """How many machines may be added. Each set counts with all it can come to have at once: what
    its spec allows, and what leaves."""
    return max(0, limits.most - fleet.potential())


def initial_size(fleet: Fleet, limits: Limits) -> int:
    """The size with which a new set begins."""
    return min(limits.desired, room(fleet, limits))


def plan(new: SetState, fleet: Fleet, limits: Limits) -> Targets:
    """Return the next step; empty if the update is done, or has to wait for machines."""
    if new.replicas > limits.desired:
        return {new.uid: limits.desired}
    growth = min(limits.desired - new.replicas, room(fleet, limits))
    if growth > 0:
        return {new.uid: new.replicas + growth}
    return _shrink(new, fleet, limits)


def _shrink(new: SetState, fleet: Fleet, limits: Limits) -> Targets:
    """Take from the old sets, oldest first: before all else machines that do not serve."""
    budget = _budget(new, fleet, limits)
    floor = promised(fleet, limits)
    targets = {s.uid: s.replicas for s in fleet.old if s.replicas > 0}
    guaranteed = fleet.guaranteed()
    for harmless in (True, False):
        for state in (s for s in fleet.old if s.uid in targets):
            while budget > 0 and targets[state.uid] > 0:
                loss = _loss(state, targets[state.uid])
                if (loss and harmless) or guaranteed - loss < floor:
                    break
                targets[state.uid] -= 1
                guaranteed -= loss
                budget -= 1
    return {s.uid: targets[s.uid] for s in fleet.old if targets.get(s.uid, s.replicas) < s.replicas}


def promised(fleet: Fleet, limits: Limits) -> int:
    """How many machines must go on serving: as many as serve now, if those are too few already.

    Machines preserved for inspection cannot serve and must not stop an update.
    """
    return min(max(0, limits.least - fleet.preserved), fleet.guaranteed())


def _budget(new: SetState, fleet: Fleet, limits: Limits) -> int:
    """How many old replicas may go. New machines that do not serve yet replace nothing, so that old
    ones which merely cannot be reached are not swept away before the new template has proved
    itself."""
    not_yet = max(0, new.replicas - new.available - new.preserved)
    return fleet.replicas() - limits.least - not_yet


def _loss(state: SetState, replicas: int) -> int:
    """How many machines that serve go with the next replica taken: 1 or 0."""
    return state.guaranteed(replicas) - state.guaranteed(replicas - 1)
