"""What a change of ``spec.replicas`` means for each set.

Sets remember, in annotations, the replicas their deployment wanted when they were last scaled: a
set in use whose memory differs from the spec has a change before it. With one set in use, that set
gets the new size. In the middle of an update, growth goes to the new set, and a reduction is shared
in proportion to the sets' sizes, after the machines that were chosen to go first.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcm.controllers.deployment.fleet import Fleet, SetState, Targets
from mcm.controllers.deployment.limits import Limits
from mcm.controllers.deployment.rollout import NOTHING, room


def is_due(fleet: Fleet, limits: Limits) -> bool:
    """Tell whether ``spec.replicas`` changed since the sets were last scaled.

    Without a new set it counts as unchanged: the update, which comes first, sizes that one.
    """
    return fleet.new is not None and remembers_otherwise(fleet, limits)


def remembers_otherwise(fleet: Fleet, limits: Limits) -> bool:
    """Tell whether a set in use was last scaled for another number of replicas."""
    return any(s.desired not in (None, limits.desired) for s in fleet.active)


def asked_for(fleet: Fleet, limits: Limits) -> int:
    """How many more machines are wanted than when the sets in use were last scaled.

    From zero nothing counts as asked for: what others remember may be of long ago.
    """
    if len(fleet.active) == 1:
        (only,) = fleet.active
        before = only.replicas if only.desired is None else only.desired
        return max(0, limits.desired - before)
    known = [s.most for s in fleet.active if s.most is not None]
    return max(0, limits.most - max(known, default=limits.most))


def plan(fleet: Fleet, limits: Limits) -> Targets:
    """Return the sizes that follow from ``limits.desired``; sets that keep theirs are left out."""
    if len(fleet.active) <= 1:
        return _resize_the_only_one(fleet, limits)
    if _is_saturated(fleet.new, limits):
        return {s.uid: 0 for s in fleet.old if s.replicas > 0}
    if not remembers_otherwise(fleet, limits):
        return NOTHING  # paused in the middle of an update: stay there
    missing = limits.most - fleet.replicas()
    if missing >= 0:
        return _grow(fleet, limits, missing)
    return _changed(fleet, _shrink(fleet, limits, -missing))


def _growing(fleet: Fleet) -> SetState | None:
    """The set that takes growth: the only one in use, else the new one, else the newest old one."""
    if len(fleet.active) == 1:
        return fleet.active[0]
    return fleet.new or (fleet.old[-1] if fleet.old else None)


def _resize_the_only_one(fleet: Fleet, limits: Limits) -> Targets:
    only = _growing(fleet)
    if only is None or only.replicas == limits.desired:
        return NOTHING
    if only.replicas > limits.desired:
        return {only.uid: limits.desired}
    return _grow(fleet, limits, limits.desired - only.replicas)


def _grow(fleet: Fleet, limits: Limits, missing: int) -> Targets:
    """Grow by what was asked for, at once, and by whatever else there is room for."""
    grows = _growing(fleet)
    if grows is None:
        return NOTHING
    allowed = max(room(fleet, limits), asked_for(fleet, limits))
    growth = min(missing, allowed, limits.desired - grows.replicas)
    return {grows.uid: grows.replicas + growth} if growth > 0 else NOTHING


def _is_saturated(new: SetState | None, limits: Limits) -> bool:
    return (
        new is not None
        and new.replicas == limits.desired == new.available
        and new.desired in (None, limits.desired)
    )


def _shrink(fleet: Fleet, limits: Limits, surplus: int) -> dict[str, int]:
    """Take ``surplus`` replicas from the sets in use, the largest first."""
    ordered = sorted(fleet.active, key=lambda s: -s.replicas)  # stable: of equals the older first
    targets = {s.uid: s.replicas for s in ordered}
    left = surplus
    for state in ordered:
        taken = min(state.elect, state.replicas, left)
        targets[state.uid] -= taken
        left -= taken
    for state in ordered:
        due = targets[state.uid] - _proportion(state, fleet, limits)
        taken = max(0, min(due, left))
        targets[state.uid] -= taken
        left -= taken
    for state in ordered:  # what rounding left over
        taken = min(targets[state.uid], left)
        targets[state.uid] -= taken
        left -= taken
    return _serving_on(fleet, ordered, targets, limits)


def _proportion(state: SetState, fleet: Fleet, limits: Limits) -> int:
    """The set's part of what the deployment may have now, rounded half up."""
    if limits.desired == 0:
        return 0
    before = state.most or sum(s.reported for s in fleet.living) or fleet.replicas()
    return (2 * state.replicas * limits.most + before) // (2 * before)


def _serving_on(
    fleet: Fleet, ordered: Sequence[SetState], targets: dict[str, int], limits: Limits
) -> dict[str, int]:
    """Where the shares would cost machines that must go on serving, take idle ones instead."""
    floor = min(max(0, limits.least - fleet.preserved), fleet.guaranteed())
    owed = 0
    for state in ordered:
        while targets[state.uid] < state.replicas and fleet.guaranteed(targets) < floor:
            targets[state.uid] += 1
            owed += 1
    for state in ordered:
        while owed > 0 and targets[state.uid] > 0:
            lower = targets[state.uid] - 1
            if state.guaranteed(lower) < state.guaranteed(lower + 1):
                break
            targets[state.uid] = lower
            owed -= 1
    return targets


def _changed(fleet: Fleet, targets: Targets) -> Targets:
    return {
        s.uid: targets[s.uid] for s in fleet.living if targets.get(s.uid, s.replicas) != s.replicas
    }
