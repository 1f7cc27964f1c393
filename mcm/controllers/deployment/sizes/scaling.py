"""What a change of ``spec.replicas`` means: the size of each set.

Sets say, in annotations, how many replicas their deployment wanted when they were last scaled: if a
set in use names another number than the spec, a change is due. With one set in use, that set gets
the new size. In the middle of an update, growth goes to the new set, and a reduction is shared in
proportion to the sets' sizes, after the machines that were chosen to go first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcm.controllers.deployment.fleet import Fleet, SetState, Targets
from mcm.controllers.deployment.sizes.bounds import Bounds, must_serve, room, serving_at
from mcm.controllers.deployment.sizes.shrinking import shrunk

_KEEP_ALL: Final[Targets] = {}


def is_due(fleet: Fleet, bounds: Bounds) -> bool:
    """Tell whether ``spec.replicas`` changed since the sets were last scaled.

    Without a new set it counts as unchanged: the update, which comes first, sizes that one.
    """
    return fleet.new is not None and scaled_for_another_size(fleet, bounds)


def scaled_for_another_size(fleet: Fleet, bounds: Bounds) -> bool:
    """Tell whether a set in use was last scaled for another number of replicas."""
    return any(s.desired not in (None, bounds.desired) for s in fleet.active)


def asked_for(fleet: Fleet, bounds: Bounds) -> int:
    """How many more machines are wanted than when the sets in use were last scaled.

    From zero nothing counts as asked for: what others say may be of long ago.
    """
    if len(fleet.active) == 1:
        (only,) = fleet.active
        before = only.replicas if only.desired is None else only.desired
        return max(0, bounds.desired - before)
    known = [s.most for s in fleet.active if s.most is not None]
    return max(0, bounds.most - max(known, default=bounds.most))


def sizes(fleet: Fleet, bounds: Bounds) -> Targets:
    """Return the sizes that follow from ``bounds.desired``; sets that keep theirs are left out."""
    if len(fleet.active) <= 1:
        return _resize_the_only_one(fleet, bounds)
    if _is_saturated(fleet.new, bounds):
        return {s.uid: 0 for s in fleet.old if s.replicas > 0}
    if not scaled_for_another_size(fleet, bounds):
        return _KEEP_ALL  # paused in the middle of an update: stay there
    missing = bounds.most - fleet.replicas()
    if missing >= 0:
        return _grow(fleet, bounds, missing)
    return _changed(fleet, _shrink(fleet, bounds, -missing))


def _growing(fleet: Fleet) -> SetState | None:
    """The set that takes growth: the only one in use, else the new one, else the newest old one."""
    if len(fleet.active) == 1:
        return fleet.active[0]
    return fleet.new or (fleet.old[-1] if fleet.old else None)


def _resize_the_only_one(fleet: Fleet, bounds: Bounds) -> Targets:
    only = _growing(fleet)
    if only is None or only.replicas == bounds.desired:
        return _KEEP_ALL
    if only.replicas > bounds.desired:
        return {only.uid: bounds.desired}
    return _grow(fleet, bounds, bounds.desired - only.replicas)


def _grow(fleet: Fleet, bounds: Bounds, missing: int) -> Targets:
    """Grow by what was asked for, at once, and by whatever else there is room for."""
    grows = _growing(fleet)
    if grows is None:
        return _KEEP_ALL
    allowed = max(room(fleet, bounds), asked_for(fleet, bounds))
    growth = min(missing, allowed, bounds.desired - grows.replicas)
    return {grows.uid: grows.replicas + growth} if growth > 0 else _KEEP_ALL


def _is_saturated(new: SetState | None, bounds: Bounds) -> bool:
    return (
        new is not None
        and new.replicas == bounds.desired == new.available
        and new.desired in (None, bounds.desired)
    )


def _shrink(fleet: Fleet, bounds: Bounds, surplus: int) -> dict[str, int]:
    """Take ``surplus`` replicas from the sets in use, the largest first."""
    ordered = sorted(fleet.active, key=lambda s: -s.replicas)  # stable: of equals the older first
    targets = {s.uid: s.replicas for s in ordered}
    left = surplus
    for state in ordered:
        taken = min(state.chosen, state.replicas, left)
        targets[state.uid] -= taken
        left -= taken
    for state in ordered:
        due = targets[state.uid] - _proportion(state, fleet, bounds)
        taken = max(0, min(due, left))
        targets[state.uid] -= taken
        left -= taken
    for state in ordered:  # what rounding left over
        taken = min(targets[state.uid], left)
        targets[state.uid] -= taken
        left -= taken
    return _serving_on(fleet, ordered, targets, bounds)


def _proportion(state: SetState, fleet: Fleet, bounds: Bounds) -> int:
    """The set's part of what the deployment may have now, rounded half up."""
    if bounds.desired == 0:
        return 0
    before = state.most or sum(s.reported for s in fleet.living) or fleet.replicas()
    return (2 * state.replicas * bounds.most + before) // (2 * before)


def _serving_on(
    fleet: Fleet, ordered: Sequence[SetState], targets: dict[str, int], bounds: Bounds
) -> dict[str, int]:
    """Where the shares would cost machines that must go on serving, take idle ones instead."""
    floor = must_serve(fleet, bounds)
    left, owed = fleet.guaranteed(targets), 0
    for state in ordered:
        useful = min(state.replicas, len(state.serving))
        while targets[state.uid] < useful and left < floor:
            targets[state.uid] += 1
            left += state.loss(targets[state.uid])
            owed += 1
    # A failing rollout keeps all that works, but not against its user.
    spare = max(0, left - serving_at(bounds.least, fleet))
    return shrunk(ordered, targets, owed, spare=spare)


def _changed(fleet: Fleet, targets: Targets) -> Targets:
    return {
        s.uid: targets[s.uid] for s in fleet.living if targets.get(s.uid, s.replicas) != s.replicas
    }
