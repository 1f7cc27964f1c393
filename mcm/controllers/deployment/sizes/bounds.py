"""How many machines a deployment may have, and how many must serve, while its sets change.

Whatever resizes sets stays within these bounds by construction; tests try to prove it wrong. Should
it be wrong all the same, the checks here refuse what it wants: a deployment that stands still is
better than one that empties itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import MachineDeploymentSpec
from mcm.api.names import STRATEGY_IN_PLACE_UPDATE, STRATEGY_RECREATE
from mcm.api.strategies import is_orchestrated_by_people, surge_of, unavailable_of
from mcm.controllers.deployment.fleet import Fleet, Targets


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """``desired`` machines, ``surge`` more for a while, ``unavailable`` fewer serving."""

    desired: int
    surge: int = 0
    unavailable: int = 0

    @property
    def most(self) -> int:
        """The most machines there may be; none at all where none are desired."""
        return self.desired + self.surge if self.desired else 0

    @property
    def least(self) -> int:
        """The fewest that must serve."""
        return max(0, self.desired - self.unavailable)


def bounds_of(spec: MachineDeploymentSpec) -> Bounds:
    """Resolve the strategy's numbers, of a spec that is valid.

    Percentages are of ``spec.replicas``, rounded up for surge and down for unavailable. Both zero
    would never let anything be replaced, so one may be unavailable then. Recreate has neither, and
    an update in place that people orchestrate has no surge.
    """
    strategy, desired = defaulted_strategy(spec), max(0, spec.replicas)
    if strategy.type == STRATEGY_RECREATE:
        return Bounds(desired)
    by_people = is_orchestrated_by_people(spec)
    surge, unavailable = 0 if by_people else surge_of(spec), unavailable_of(spec)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(desired, surge=surge, unavailable=min(unavailable, desired))


def recorded_bounds(spec: MachineDeploymentSpec) -> Bounds:
    """Return the bounds that sets say they were scaled for. The surge of an update in place is not
    among them, as the Go original has it: nothing is shared out by it."""
    bounds = bounds_of(spec)
    in_place = defaulted_strategy(spec).type == STRATEGY_IN_PLACE_UPDATE
    return replace(bounds, surge=0) if in_place else bounds


def room(fleet: Fleet, bounds: Bounds) -> int:
    """How many machines may be added. Each set counts with all it can come to have at once: what
    its spec allows, and what leaves."""
    return max(0, bounds.most - fleet.potential())


def must_serve(fleet: Fleet, bounds: Bounds) -> int:
    """How many machines must go on serving: as many as serve now, if those are too few already.

    Machines preserved for inspection cannot serve and must not stop an update.
    """
    return serving_at(floor_of(fleet, bounds), fleet)


def serving_at(floor: int, fleet: Fleet) -> int:
    """How many machines must serve if ``floor`` should, of those that do and can."""
    return min(max(0, floor - fleet.preserved), fleet.guaranteed())


def floor_of(fleet: Fleet, bounds: Bounds) -> int:
    """How many machines an update leaves alone.

    Those that may be unavailable are given away in advance, for new ones; if those turn out not to
    come up, nothing more is.
    """
    failing = fleet.new is not None and fleet.new.failing
    return bounds.desired if failing else bounds.least


class OutOfBounds(AssertionError):
    """A step asks for what must never be; its text says which numbers are wrong."""


def check_scaling(fleet: Fleet, targets: Targets, bounds: Bounds, *, asked_for: int = 0) -> None:
    """Check a change of sizes that follows a change of ``spec.replicas``.

    ``asked_for`` is how many machines more the deployment wants than at its last scaling; those are
    granted at once, also while machines of an earlier scale-down are still leaving.
    """
    _check_sizes(fleet, targets)
    before, after = fleet.potential(), fleet.potential(targets)
    if after > max(bounds.most, before + max(0, asked_for)):
        raise OutOfBounds(f"{after} machines could exist, at most {bounds.most} may: {targets}")
    floor = min(bounds.least, fleet.replicas())
    if fleet.replicas(targets) < floor:
        raise OutOfBounds(f"fewer than {floor} replicas would be left: {targets}")


def check_rollout(fleet: Fleet, targets: Targets, bounds: Bounds) -> None:
    """Check one step of a rolling update, which must not cost machines that serve either."""
    check_scaling(fleet, targets, bounds)
    new = fleet.new
    if new is not None and targets.get(new.uid, new.replicas) < new.replicas:
        return  # the new set shrinks to what the deployment as a whole wants: that was asked for
    floor, left = must_serve(fleet, bounds), fleet.guaranteed(targets)
    if left < floor:
        raise OutOfBounds(f"{left} machines would serve, {floor} must: {targets}")


def _check_sizes(fleet: Fleet, targets: Targets) -> None:
    known = {s.uid for s in fleet.living}
    for uid, replicas in targets.items():
        if uid not in known or replicas < 0:
            raise OutOfBounds(f"set {uid} cannot get {replicas} replicas")
