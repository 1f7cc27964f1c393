"""Which pods of a StatefulSet are made and which end next: pure decisions over its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.sandbox.world.kinds import Pod
from mcm.sandbox.world.owned_pods import Tally, tally
from mcm.sandbox.world.stateful_sets.identity import revision_of
from mcm.sandbox.world.stateful_sets.kinds import StatefulSet


@final
@dataclass(frozen=True, slots=True)
class Revisions:
    """The name of the template that the set had at its last complete update, and of the one it
    has now."""

    current: str
    update: str


@final
@dataclass(frozen=True, slots=True)
class PodPlan:
    """``make`` is number and revision of each; ``wait`` is how many seconds until one that serves
    has served for long enough, None if that is not what is waited for."""

    make: tuple[tuple[int, str], ...] = ()
    end: tuple[Pod, ...] = ()
    wait: float | None = None


def plan(
    stateful_set: StatefulSet, pods: Mapping[int, Pod], revisions: Revisions, now: datetime
) -> PodPlan:
    """Take the next steps. In order, that is one: upwards to make pods, each when the one before
    serves; then downwards to end those beyond the size; then downwards again, from template to
    template. In parallel, the first two are taken for all at once.

    A name is free only when its pod is gone.
    """
    wanted = wanted_ordinals(stateful_set)
    make, end, wait = _filled(stateful_set, pods, revisions, now)
    ordered = stateful_set.spec.pod_management_policy != "Parallel"
    settled = not (make or end) and _all_serve(stateful_set, [pods.get(o) for o in wanted], now)
    if ordered and not settled:
        return PodPlan(make, end, wait)
    beyond = [pods[ordinal] for ordinal in sorted(set(pods) - set(wanted), reverse=True)]
    leaving = [pod for pod in (beyond[:1] if ordered else beyond) if not pod.terminating]
    if beyond and ordered:
        return PodPlan(end=tuple(leaving))
    outdated = _next_outdated(stateful_set, pods, revisions, now) if not make else ()
    return PodPlan(make, (*end, *leaving, *(p for p in outdated if p not in end)), wait)


def wanted_ordinals(stateful_set: StatefulSet) -> range:
    first = max(0, stateful_set.spec.ordinals.start)
    return range(first, first + max(0, stateful_set.spec.replicas))


def _filled(
    stateful_set: StatefulSet, pods: Mapping[int, Pod], revisions: Revisions, now: datetime
) -> tuple[tuple[tuple[int, str], ...], tuple[Pod, ...], float | None]:
    """Return what to make and what has ended by itself, in order no more than the first."""
    ordered = stateful_set.spec.pod_management_policy != "Parallel"
    make: list[tuple[int, str]] = []
    end: list[Pod] = []
    waits: list[float] = []
    for ordinal in wanted_ordinals(stateful_set):
        pod = pods.get(ordinal)
        if pod is None:
            make.append((ordinal, _revision_for(stateful_set, ordinal, revisions)))
        elif pod.finished and not pod.terminating:
            end.append(pod)
        elif _serves(stateful_set, pod, now):
            continue
        elif (wait := _count(stateful_set, pod, now).wait) is not None:
            waits.append(wait)
        if ordered:
            break
    return tuple(make), tuple(end), min(waits, default=None)


def _revision_for(stateful_set: StatefulSet, ordinal: int, revisions: Revisions) -> str:
    strategy = stateful_set.spec.update_strategy
    kept = strategy.type != "OnDelete" and ordinal < _first_updated(stateful_set)
    return revisions.current if kept else revisions.update


def _first_updated(stateful_set: StatefulSet) -> int:
    partition = stateful_set.spec.update_strategy.rolling_update.partition
    return max(0, stateful_set.spec.ordinals.start) + max(0, partition)


def _next_outdated(
    stateful_set: StatefulSet, pods: Mapping[int, Pod], revisions: Revisions, now: datetime
) -> tuple[Pod, ...]:
    """One at a time, from the highest number down, each when all above it serve."""
    if stateful_set.spec.update_strategy.type == "OnDelete":
        return ()
    for ordinal in reversed(wanted_ordinals(stateful_set)):
        pod = pods.get(ordinal)
        if pod is None or ordinal < _first_updated(stateful_set):
            return ()
        if revision_of(pod) != revisions.update and not pod.terminating:
            return (pod,)
        if not _serves(stateful_set, pod, now):
            return ()
    return ()


def _all_serve(stateful_set: StatefulSet, pods: Sequence[Pod | None], now: datetime) -> bool:
    return all(pod is not None and _serves(stateful_set, pod, now) for pod in pods)


def _serves(stateful_set: StatefulSet, pod: Pod, now: datetime) -> bool:
    return _count(stateful_set, pod, now).available > 0


def _count(stateful_set: StatefulSet, pod: Pod, now: datetime) -> Tally:
    active = [pod] if pod.active else []
    return tally(active, min_ready_seconds=stateful_set.spec.min_ready_seconds, now=now)
