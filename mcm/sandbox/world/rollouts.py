"""How many pods each ReplicaSet of a Deployment shall have next: pure decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from mcm.sandbox.world.kinds import Deployment, ReplicaSet
from mcm.sandbox.world.shares import share

Sizes = dict[str, int]
"""ReplicaSet name to the replicas it shall have; those that stay are left out."""


@final
@dataclass(frozen=True, slots=True)
class RolloutBounds:
    """``most`` pods at any time, ``least`` that must serve."""

    desired: int
    most: int
    least: int


def bounds_of(deployment: Deployment) -> RolloutBounds:
    """Percentages round up for surge, down for unavailable; if both are 0, one may be missing."""
    spec = deployment.spec
    desired = max(0, spec.replicas)
    if spec.strategy.type == "Recreate":
        return RolloutBounds(desired, most=desired, least=0)
    surge = share(spec.strategy.rolling_update.max_surge, desired, round_up=True)
    missing = share(spec.strategy.rolling_update.max_unavailable, desired, round_up=False)
    if surge == 0 and missing == 0:
        missing = 1
    return RolloutBounds(desired, most=desired + surge, least=max(0, desired - missing))


def next_sizes(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], *, old_pods: int
) -> Sizes:
    """Take the next step of a rollout. ``old`` is oldest first; ``old_pods`` counts those of old
    sets that still exist, on their way out or not."""
    bounds = bounds_of(deployment)
    if deployment.spec.paused:
        return _scaled_only(bounds, new, old)
    if new is None:
        return {}
    if deployment.spec.strategy.type == "Recreate":
        return _recreated(bounds, new, old, old_pods)
    return _rolled(bounds, new, old)


def _scaled_only(bounds: RolloutBounds, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Sizes:
    """A paused rollout still follows ``replicas``, where it is clear which set is meant."""
    sets = [*old, *([new] if new is not None else [])]
    active = [s for s in sets if s.spec.replicas > 0] or ([new] if new is not None else [])
    return _changed(active[0], bounds.desired) if len(active) == 1 else {}


def _recreated(
    bounds: RolloutBounds, new: ReplicaSet, old: Sequence[ReplicaSet], old_pods: int
) -> Sizes:
    sizes: Sizes = {}
    for replica_set in old:
        sizes |= _changed(replica_set, 0)
    if not sizes and not old_pods:
        sizes |= _changed(new, bounds.desired)
    return sizes


def _rolled(bounds: RolloutBounds, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    sizes = _grown(bounds, new, old)
    size_of_new = sizes.get(new.metadata.name, new.spec.replicas)
    total = size_of_new + sum(s.spec.replicas for s in old)
    starting = max(0, size_of_new - new.status.available_replicas)
    spare = total - bounds.least - starting
    serving = new.status.available_replicas + sum(s.status.available_replicas for s in old)
    surplus = serving - bounds.least
    shrunk = {s.metadata.name: s.spec.replicas for s in old}
    # Pods that do not serve cost nobody anything: they go first, whichever set they are of.
    for replica_set in old:
        idle = replica_set.spec.replicas - replica_set.status.available_replicas
        gone = _within(idle, spare)
        shrunk[replica_set.metadata.name] -= gone
        spare -= gone
    for replica_set in old:
        gone = _within(shrunk[replica_set.metadata.name], spare, surplus)
        shrunk[replica_set.metadata.name] -= gone
        spare, surplus = spare - gone, surplus - gone
        sizes |= _changed(replica_set, shrunk[replica_set.metadata.name])
    return sizes


def _within(*numbers: int) -> int:
    return max(0, min(numbers))


def _grown(bounds: RolloutBounds, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    size = new.spec.replicas
    if size >= bounds.desired:
        return _changed(new, bounds.desired)
    room = bounds.most - size - sum(s.spec.replicas for s in old)
    return _changed(new, size + min(max(0, room), bounds.desired - size))


def _changed(replica_set: ReplicaSet, size: int) -> Sizes:
    return {} if replica_set.spec.replicas == size else {replica_set.metadata.name: size}
