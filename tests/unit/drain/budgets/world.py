"""A budget, its pods and two lagging mirrors of them, moved on one small step at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from mcm.api.core import (
    Pod,
    PodCondition,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PodSpec,
    PodStatus,
)
from mcm.api.meta import LabelSelector, ObjectMeta
from mcm.drain.budgets import Allowances, BudgetView, Disruptions, view_for

KEY = "default/b"
_GONE_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Request:
    drain: int
    pod: Pod
    seen: int
    """The version of the budget that the mirror showed."""
    outcome: str = ""


@dataclass
class World:
    """The server, whose budget and pods have one count of versions, as etcd has; what the mirrors
    hold of them; and drains, of which each has some of the pods."""

    pods_of: list[list[str]]
    needed: int
    now: float = 0.0
    version: int = 1
    pods: dict[str, Pod] = field(default_factory=dict)
    budget_log: list[PodDisruptionBudget] = field(default_factory=list)
    pod_log: list[tuple[str, Pod | None]] = field(default_factory=list)
    mirrored: dict[str, Pod] = field(default_factory=dict)
    budget: PodDisruptionBudget | None = None
    told_budgets: int = 0
    told_pods: int = 0
    in_flight: list[Request] = field(default_factory=list)
    taken_by_others: list[int] = field(default_factory=list)
    """The versions in which somebody else used the budget up."""
    unexcused: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    asked: int = 0
    woken: set[int] = field(default_factory=set)
    timers: dict[int, float] = field(default_factory=dict)
    """When a drain looks again although nothing wakes it."""

    def __post_init__(self) -> None:
        self.disruptions = Disruptions(
            pods=self.mirrored.get,
            budgets=lambda key: self.budget if key == KEY else None,
            random=Random(1),
            freed=lambda _namespace: self.wake_all(),
        )
        for name in (name for names in self.pods_of for name in names):
            self._write_pod(name, uid=f"uid-{name}")
        self.recount()
        self.deliver_everything()
        self.wake_all()

    def wake_all(self) -> None:
        self.woken.update(range(len(self.pods_of)))

    # ---- the server ------------------------------------------------------------------------------

    @property
    def status(self) -> PodDisruptionBudgetStatus:
        return self.budget_log[-1].status

    def _write_pod(self, name: str, *, uid: str, going: bool = False) -> None:
        self.version += 1
        pod = Pod(
            metadata=ObjectMeta(
                name=name,
                namespace="default",
                uid=uid,
                resource_version=str(self.version),
                deletion_timestamp=_GONE_AT if going else None,
            ),
            spec=PodSpec(node_name="node"),
            status=PodStatus(
                phase="Running", conditions=(PodCondition(type="Ready", status="True"),)
            ),
        )
        self.pods[f"default/{name}"] = pod
        self.pod_log.append((pod.metadata.key, pod))

    def _write_budget(self, status: PodDisruptionBudgetStatus) -> None:
        self.version += 1
        self.budget_log.append(
            PodDisruptionBudget(
                metadata=ObjectMeta(
                    name="b",
                    namespace="default",
                    generation=1,
                    resource_version=str(self.version),
                ),
                spec=PodDisruptionBudgetSpec(min_available=self.needed, selector=LabelSelector()),
                status=status,
            )
        )

    def recount(self) -> None:
        """The disruption controller has its turn."""
        going = {p.metadata.name for p in self.pods.values() if p.metadata.deletion_timestamp}
        before = self.budget_log[-1].status.disrupted_pods if self.budget_log else {}
        there = {p.metadata.name for p in self.pods.values()}
        disrupted = {n: s for n, s in before.items() if n in there - going}
        healthy = len(there - going - set(disrupted))
        status = PodDisruptionBudgetStatus(
            observed_generation=1,
            disruptions_allowed=max(0, healthy - self.needed),
            current_healthy=healthy,
            desired_healthy=self.needed,
            expected_pods=len(there),
            disrupted_pods=disrupted,
        )
        if not self.budget_log or status != self.status:
            self._write_budget(status)

    def _evict(self, name: str) -> bool:
        if self.status.disruptions_allowed <= 0:
            return False
        old = self.status
        self._write_budget(
            PodDisruptionBudgetStatus(
                observed_generation=1,
                disruptions_allowed=old.disruptions_allowed - 1,
                current_healthy=old.current_healthy,
                desired_healthy=old.desired_healthy,
                expected_pods=old.expected_pods,
                disrupted_pods={**old.disrupted_pods, name: str(self.version)},
            )
        )
        self._write_pod(name, uid=self.pods[f"default/{name}"].metadata.uid, going=True)
        return True

    def evict_by_another(self, choice: int) -> None:
        there = sorted(k for k, p in self.pods.items() if not p.metadata.deletion_timestamp)
        if there and self._evict(there[choice % len(there)].partition("/")[2]):
            self.taken_by_others.append(self.version)

    def end_pod(self, choice: int) -> None:
        """A pod that goes is gone, and its successor is ready elsewhere, where nobody drains."""
        going = sorted(k for k, p in self.pods.items() if p.metadata.deletion_timestamp)
        if not going:
            return
        key = going[choice % len(going)]
        del self.pods[key]
        self.version += 1
        self.pod_log.append((key, None))
        self._write_pod(f"successor-{self.version}", uid=f"uid-{self.version}")

    def serve(self, choice: int) -> None:
        """The server does what it is asked; the answer is on its way."""
        if self.in_flight:
            self._serve(self.in_flight[choice % len(self.in_flight)])

    def _serve(self, request: Request) -> None:
        if request.outcome:
            return
        pod = self.pods.get(request.pod.metadata.key)
        if pod is None:
            request.outcome = "gone"
        elif pod.metadata.deletion_timestamp or self._evict(pod.metadata.name):
            request.outcome = "granted"
        else:
            request.outcome = "refused"
            if not any(version > request.seen for version in self.taken_by_others):
                self.unexcused.append(pod.metadata.key)

    def answer(self, choice: int, *, lost: bool = False) -> None:
        if not self.in_flight:
            return
        request = self.in_flight.pop(choice % len(self.in_flight))
        self._serve(request)
        uid = request.pod.metadata.uid
        if request.outcome == "granted":
            self.evicted.append(request.pod.metadata.key)
        if request.outcome == "granted" or lost:
            self.disruptions.granted(uid, self.now)
        elif request.outcome == "refused":
            self.disruptions.refused(uid, self.now)
        else:
            self.disruptions.released(uid)

    # ---- the mirrors -----------------------------------------------------------------------------

    def deliver_budget(self) -> None:
        if self.told_budgets < len(self.budget_log):
            self.budget = self.budget_log[self.told_budgets]
            self.told_budgets += 1
            self.disruptions.budget_changed(KEY, self.budget)
            self.wake_all()

    def relist_budget(self) -> None:
        """The mirror misses what was between: it shows the newest at once."""
        self.told_budgets = max(self.told_budgets, len(self.budget_log) - 1)
        self.deliver_budget()

    def deliver_pod(self) -> None:
        if self.told_pods < len(self.pod_log):
            key, pod = self.pod_log[self.told_pods]
            self.told_pods += 1
            old = self.mirrored.get(key)
            if pod is None:
                self.mirrored.pop(key, None)
            else:
                self.mirrored[key] = pod
            changed = pod or old
            if changed is not None:
                self.disruptions.pod_changed(changed.metadata.uid)

    @property
    def is_behind(self) -> bool:
        """A mirror does not show all there is."""
        return self.told_pods < len(self.pod_log) or self.told_budgets < len(self.budget_log)

    def deliver_everything(self) -> None:
        while self.told_pods < len(self.pod_log):
            self.deliver_pod()
        while self.told_budgets < len(self.budget_log):
            self.deliver_budget()

    # ---- the drains ------------------------------------------------------------------------------

    def view(self, pod: Pod) -> BudgetView:
        return view_for(pod, [self.budget] if self.budget else [])

    def waiting(self, drain: int) -> list[Pod]:
        asked = {request.pod.metadata.uid for request in self.in_flight}
        return [
            pod
            for name in self.pods_of[drain]
            if (pod := self.mirrored.get(f"default/{name}")) is not None
            and pod.metadata.uid not in asked
            and pod.metadata.key not in self.evicted
            and pod.metadata.deletion_timestamp is None
        ]

    def pass_time(self) -> bool:
        """Go on to the next timer; tell whether there is one."""
        if not self.timers:
            return False
        self.now = max(self.now, min(self.timers.values()))
        due = [drain for drain, moment in self.timers.items() if moment <= self.now]
        self.woken.update(due)
        for drain in due:
            del self.timers[drain]
        return True

    def drain(self, drain: int) -> int:
        """Do one pass; return how many pods it asks."""
        self.woken.discard(drain)
        assert self.budget is not None
        allowances = Allowances(self.disruptions, now=self.now)
        waiting = self.waiting(drain)
        asked = [pod for pod in waiting if allowances.take(pod, self.view(pod))]
        waits = [allowances.wait(self.view(pod)) for pod in waiting if pod not in asked]
        moments = [self.now + wait for wait in waits if wait is not None]
        self.timers.pop(drain, None)
        if moments:
            self.timers[drain] = min(moments)
        for pod in asked:
            self.disruptions.asked(pod, self.view(pod))
            seen = int(self.budget.metadata.resource_version)
            self.in_flight.append(Request(drain, pod, seen))
        self.asked += len(asked)
        return len(asked)
