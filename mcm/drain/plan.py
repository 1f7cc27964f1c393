"""The next step of a drain: from what is on the node to what to ask for, and when to look again.

A drain is no task that runs for hours. Its start, deadline and mode are on the machine, the rest is
on the node; so each pass plans from scratch, and a pass after a restart plans the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import final

from mcm.api.core import Pod
from mcm.drain.budgets import BudgetView
from mcm.drain.execution import Action, Attempt, Verb
from mcm.drain.mode import Mode
from mcm.drain.selection import Arrangement, uses_claims

GRACE_BUFFER = timedelta(seconds=30)
"""What a pod may need beyond its grace period before it counts as stuck."""
EVICTION_INTERVAL = 20.0
"""Seconds that one of the allowed retries stands for."""
UNSEEN_FOR = 60.0
"""Seconds after an accepted eviction without a sign of it, after which one asks again."""


@final
@dataclass(frozen=True, slots=True)
class Snapshot:
    """All a pass looks at. ``budgets`` says what budgets say of a pod; ``retries`` how often a pod
    is asked to leave before it is deleted."""

    arrangement: Arrangement
    mode: Mode
    attempts: Mapping[str, Attempt]
    budgets: Callable[[Pod], BudgetView]
    retries: int
    now: datetime
    monotonic: float


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """``actions`` to take now; ``waiting`` pods need none now. ``look_again`` in seconds."""

    actions: tuple[Action, ...] = ()
    waiting: tuple[Pod, ...] = ()
    look_again: float | None = None

    @property
    def finished(self) -> bool:
        """Nothing is left to take away or to wait for."""
        return not self.actions and not self.waiting


def plan(snapshot: Snapshot) -> Plan:
    """Plan the pass. In a forced one every pod is deleted at once and nothing is waited for."""
    if snapshot.mode.forced:
        return _forced(snapshot)
    return _gentle(snapshot)


def _forced(snapshot: Snapshot) -> Plan:
    # Grace zero says "the processes are gone": only true where no kubelet runs them any more.
    grace = 0 if snapshot.mode.kubelet_dead else 1
    return Plan(tuple(Action(Verb.DELETE, pod, grace) for pod in snapshot.arrangement.by_force))


def _gentle(snapshot: Snapshot) -> Plan:
    draft = _Draft(snapshot)
    for pod in (p for p in snapshot.arrangement.due if not uses_claims(p)):
        draft.treat(pod)
    draft.treat_serially([p for p in snapshot.arrangement.due if uses_claims(p)])
    draft.leave_alone((*snapshot.arrangement.awaited, *snapshot.arrangement.later))
    return draft.finished()


@final
class _Draft:
    """A plan in the making."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._actions: list[Action] = []
        self._waiting: list[Pod] = []
        self._moments: list[float] = []

    def treat(self, pod: Pod) -> bool:
        """Ask ``pod`` to leave, unless it must not be asked now; tell whether it is leaving."""
        left = _leaving_for(pod, self._snapshot)
        if left is not None:
            self._wait(pod, left)
            return left > 0  # a stuck one holds nobody up any longer
        attempt = self._snapshot.attempts.get(pod.metadata.uid)
        wait = _wait_of(pod, attempt, self._snapshot)
        if wait > 0:
            self._wait(pod, wait)
            return False
        self._actions.append(_action(pod, attempt, self._snapshot))
        return True

    def treat_serially(self, pods: Sequence[Pod]) -> None:
        """Let one pod go at a time. One that a budget holds back lets the next one pass."""
        leaving = False
        for pod in pods:
            if leaving:
                self._waiting.append(pod)
            else:
                leaving = self.treat(pod)

    def leave_alone(self, pods: Iterable[Pod]) -> None:
        """Wait for pods that are not to be asked, or not yet."""
        self._waiting.extend(pods)

    def finished(self) -> Plan:
        change = self._snapshot.mode.next_change
        if self._waiting and change is not None:
            self._moments.append(_strictly_after(change, self._snapshot.now))
        return Plan(tuple(self._actions), tuple(self._waiting), min(self._moments, default=None))

    def _wait(self, pod: Pod, seconds: float) -> None:
        self._waiting.append(pod)
        if seconds > 0:
            self._moments.append(seconds)


def _action(pod: Pod, attempt: Attempt | None, snapshot: Snapshot) -> Action:
    """Evict, or delete what has refused to go for as long as the retries stand for."""
    patience = snapshot.retries * EVICTION_INTERVAL
    asked_for = snapshot.monotonic - attempt.first_at if attempt else 0.0
    exhausted = snapshot.retries == 0 or (attempt is not None and asked_for >= patience)
    return Action(Verb.DELETE if exhausted else Verb.EVICT, pod)


def _leaving_for(pod: Pod, snapshot: Snapshot) -> float | None:
    """Return the seconds ``pod`` may still take to end; zero or less: stuck; None: not leaving."""
    ends = pod.metadata.deletion_timestamp  # already counts the grace period
    if ends is not None:
        return (ends + GRACE_BUFFER - snapshot.now).total_seconds()
    attempt = snapshot.attempts.get(pod.metadata.uid)
    if attempt is None or attempt.accepted_at is None:
        return None
    # The eviction was accepted, and the watch has not told of it yet.
    unseen = attempt.accepted_at + UNSEEN_FOR - snapshot.monotonic
    return unseen if unseen > 0 else None


def _wait_of(pod: Pod, attempt: Attempt | None, snapshot: Snapshot) -> float:
    """Return how long to leave a refused pod alone: not at all once its budgets have changed so
    that they allow it."""
    if attempt is None or attempt.accepted_at is not None:
        return 0.0
    if attempt.budgets:
        view = snapshot.budgets(pod)
        if view.versions != attempt.budgets and view.allows:
            return 0.0
    return max(0.0, attempt.retry_at - snapshot.monotonic)


def _strictly_after(moment: datetime, now: datetime) -> float:
    """Seconds until ``moment`` is over, as the mode changes only then."""
    return max(0.0, (moment - now).total_seconds()) + 0.001


def stuck(snapshot: Snapshot) -> Sequence[Pod]:
    """Return the pods that should have ended by now and have not."""
    return tuple(
        pod
        for pod in snapshot.arrangement.taken
        if pod.metadata.deletion_timestamp is not None and (_leaving_for(pod, snapshot) or 0.0) <= 0
    )
