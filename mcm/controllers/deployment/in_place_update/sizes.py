"""The sizes of sets while machines are updated in place: they follow the machines that moved.

A machine that changed its set is a replica more of the one and a replica less of the other, which
is written before anything else is decided. Old sets make no machines: what they lose, the new set
makes. It grows within the same bounds as in a rolling update; the machines above the desired number
that this takes are the last ones left in old sets, and go when the new set is whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

from mcm.controllers.deployment.fleet import Fleet, SetState, Targets
from mcm.controllers.deployment.in_place_update.selection import quota
from mcm.controllers.deployment.sizes import scaling
from mcm.controllers.deployment.sizes.bounds import (
    Bounds,
    check_rollout,
    check_scaling,
    floor_of,
    must_serve,
    room,
)
from mcm.controllers.deployment.sizes.shrinking import shrunk


@final
@dataclass(frozen=True, slots=True)
class Step:
    """Sizes to set, and how many more machines may be selected for their update."""

    targets: Targets = field(default_factory=dict)
    select: int = 0


def after_moves(fleet: Fleet) -> Targets:
    """Return the sizes that follow from machines which changed their set; empty if all do.

    Sets that shrink come first: a pass that ends in between then leaves one replica too few for a
    moment, and the machine is there all the same.
    """
    arrived = {s.uid: s.arrived for s in fleet.living if s.arrived}
    left = sum(arrived.values())
    shrunk: dict[str, int] = {}
    for state in fleet.living:
        gap = min(left, max(0, state.replicas - len(state.serving)))
        if state.locked and gap and state.uid not in arrived:
            shrunk[state.uid] = state.replicas - gap
            left -= gap
    grown = {s.uid: s.replicas + arrived[s.uid] for s in fleet.living if s.uid in arrived}
    return {**shrunk, **grown}


def in_place_step(
    new: SetState, fleet: Fleet, bounds: Bounds, *, on_the_way: int, selecting: bool
) -> Step:
    """Return the next step. ``on_the_way`` machines of old sets are about to join the new one;
    with ``selecting`` it is decided here how many more are to. Raises :class:`.OutOfBounds`."""
    present = _without_promises(fleet)
    if present.replicas() > bounds.most and scaling.is_due(present, bounds):
        targets = scaling.sizes(present, bounds)
        check_scaling(present, targets, bounds)
        return Step(_from(fleet, present, targets))
    granted = _asked_for(fleet, bounds)
    targets = _next_sizes(new, present, bounds, on_the_way=on_the_way, granted=granted)
    if any(targets.get(s.uid, s.replicas) > s.replicas for s in present.living):
        check_scaling(present, targets, bounds, asked_for=granted)
    else:
        check_rollout(present, targets, bounds)
    if not selecting or any(size < _size(present, uid) for uid, size in targets.items()):
        return Step(_from(fleet, present, targets))
    more = quota(
        serving=present.guaranteed(targets),
        floor=max(0, floor_of(present, bounds) - present.preserved),
        desired=bounds.desired,
        in_new=targets.get(new.uid, new.replicas),
        on_the_way=on_the_way,
    )
    return Step(_from(fleet, present, targets), select=more)


def _without_promises(fleet: Fleet) -> Fleet:
    """Old sets as large as what they have: they make nothing more."""
    old = tuple(replace(s, replicas=min(s.replicas, len(s.serving))) for s in fleet.old)
    return replace(fleet, old=old)


def _next_sizes(
    new: SetState, fleet: Fleet, bounds: Bounds, *, on_the_way: int, granted: int
) -> Targets:
    if new.replicas > bounds.desired:
        return {new.uid: bounds.desired}
    missing = bounds.desired - new.replicas - on_the_way
    growth = min(missing, max(room(fleet, bounds), granted))
    if growth > 0:
        return {new.uid: new.replicas + growth}
    whole = new.replicas >= bounds.desired
    surplus = fleet.replicas() - (bounds.desired if whole else bounds.most)
    return _less_of_old(fleet, surplus, bounds)


def _less_of_old(fleet: Fleet, surplus: int, bounds: Bounds) -> Targets:
    """Take ``surplus`` replicas from old sets, oldest first: those which do not serve before those
    which do, as far as the others are enough."""
    spare = fleet.guaranteed() - must_serve(fleet, bounds)
    targets = shrunk(fleet.old, {s.uid: s.replicas for s in fleet.old}, surplus, spare=spare)
    return {s.uid: targets[s.uid] for s in fleet.old if targets[s.uid] < s.replicas}


def _asked_for(fleet: Fleet, bounds: Bounds) -> int:
    """How many more machines are wanted than when the sets in use were last scaled: granted at
    once, also while machines of an earlier scale-down still leave."""
    known = [s.desired for s in fleet.active if s.desired is not None]
    return max(0, bounds.desired - max(known, default=bounds.desired))


def _size(fleet: Fleet, uid: str) -> int:
    return next((s.replicas for s in fleet.living if s.uid == uid), 0)


def _from(fleet: Fleet, present: Fleet, targets: Targets) -> Targets:
    """Return ``targets``, made for ``present``, as they concern ``fleet``."""
    wanted = {s.uid: targets.get(s.uid, s.replicas) for s in present.living}
    return {s.uid: wanted[s.uid] for s in fleet.living if wanted[s.uid] != s.replicas}
