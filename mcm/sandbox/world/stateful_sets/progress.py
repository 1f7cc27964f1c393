"""What a StatefulSet says of itself, such that ``kubectl rollout status`` knows when it is done."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from msgspec.structs import replace

from mcm.sandbox.world.kinds import Pod
from mcm.sandbox.world.owned_pods import tally
from mcm.sandbox.world.stateful_sets.identity import revision_of
from mcm.sandbox.world.stateful_sets.kinds import StatefulSet, StatefulSetStatus
from mcm.sandbox.world.stateful_sets.plan import Revisions


def status_of(
    stateful_set: StatefulSet, pods: Collection[Pod], revisions: Revisions, now: datetime
) -> StatefulSetStatus:
    """Count the pods. When all of them are of the new revision and serve, it is the current one."""
    spec = stateful_set.spec
    active = [pod for pod in pods if pod.active]
    count = tally(active, min_ready_seconds=spec.min_ready_seconds, now=now)
    found = StatefulSetStatus(
        replicas=len(pods),
        ready_replicas=count.ready,
        available_replicas=count.available,
        current_replicas=sum(1 for pod in active if revision_of(pod) == revisions.current),
        updated_replicas=sum(1 for pod in active if revision_of(pod) == revisions.update),
        current_revision=revisions.current,
        update_revision=revisions.update,
        observed_generation=stateful_set.metadata.generation,
    )
    counts = (found.replicas, found.ready_replicas, found.updated_replicas)
    if spec.update_strategy.type == "OnDelete" or counts != (spec.replicas,) * 3:
        return found
    return replace(
        found, current_revision=revisions.update, current_replicas=found.updated_replicas
    )
