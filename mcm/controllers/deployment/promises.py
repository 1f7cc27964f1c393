"""The last look before sets are resized: a plan that would break a promise is not carried out.

The planners keep these by construction; tests try to prove them wrong. Should they be wrong all the
same, a deployment that stands still is better than one that empties itself.
"""

from __future__ import annotations

from mcm.controllers.deployment.fleet import Fleet, Targets
from mcm.controllers.deployment.limits import Limits
from mcm.controllers.deployment.rollout import promised


class BrokenPromise(AssertionError):
    """A plan asks for what must never be; its text says which numbers are wrong."""


def check_scaling(fleet: Fleet, targets: Targets, limits: Limits, *, asked_for: int = 0) -> None:
    """Check a change of sizes that follows a change of ``spec.replicas``.

    ``asked_for`` is how many machines more the deployment wants than at its last scaling; those are
    granted at once, also while machines of an earlier scale-down are still leaving.
    """
    _check_sizes(fleet, targets)
    before, after = fleet.potential(), fleet.potential(targets)
    if after > max(limits.most, before + max(0, asked_for)):
        raise BrokenPromise(f"{after} machines could exist, at most {limits.most} may: {targets}")
    floor = min(limits.least, fleet.replicas())
    if fleet.replicas(targets) < floor:
        raise BrokenPromise(f"fewer than {floor} replicas would be left: {targets}")


def check_rollout(fleet: Fleet, targets: Targets, limits: Limits) -> None:
    """Check one step of a rolling update, which must not cost machines that serve either."""
    check_scaling(fleet, targets, limits)
    new = fleet.new
    if new is not None and targets.get(new.uid, new.replicas) < new.replicas:
        return  # the new set shrinks to what the deployment as a whole wants: that was asked for
    floor, left = promised(fleet, limits), fleet.guaranteed(targets)
    if left < floor:
        raise BrokenPromise(f"{left} machines would serve, {floor} must: {targets}")


def _check_sizes(fleet: Fleet, targets: Targets) -> None:
    known = {s.uid for s in fleet.living}
    for uid, replicas in targets.items():
        if uid not in known or replicas < 0:
            raise BrokenPromise(f"set {uid} cannot get {replicas} replicas")
