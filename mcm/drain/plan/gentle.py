"""A pass without force: pods are asked as waves, lanes, budgets and their own patience allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, final

from mcm.api.core import Pod
from mcm.drain.budgets import Obstacle, ObstacleKind
from mcm.drain.execution import Action, Verb
from mcm.drain.memory import Asked
from mcm.drain.plan.patience import Leaving, leaving, patience_ends, patience_is_over
from mcm.drain.plan.situation import PassPlan, Situation
from mcm.drain.result import Cause, PodStanding
from mcm.drain.volumes import Handover, Lanes, Stage

_A_MOMENT: Final = 0.001
"""Seconds: the mode changes only after its moment."""


def plan_gently(situation: Situation) -> PassPlan:
    """Plan the pass."""
    return _Draft(situation).planned()


@final
class _Draft:
    """A plan in the making."""

    def __init__(self, situation: Situation) -> None:
        self._at = situation
        self._snapshot = situation.snapshot
        self._open: Mapping[str, Handover] = {
            h.pod_uid: h for h in situation.record.handovers if not h.over
        }
        self._lanes = Lanes(self._open.values(), self._snapshot.volumes, situation.width)
        here = {pod.metadata.uid for pod in self._snapshot.pods}
        self._here = here
        self._reserve_lanes_of_lost_answers()
        self._held_by: set[str] = set()
        self._held = {u: s for u, s in situation.record.held_since.items() if u in here}
        self._actions: list[Action] = []
        self._standings: list[PodStanding] = []
        self._moments: list[float] = []

    def planned(self) -> PassPlan:
        arrangement = self._at.arrangement
        for pod in arrangement.due:
            self._treat(pod)
        if self._at.prepared is not None and self._at.prepared.look_again is not None:
            self._moments.append(self._at.prepared.look_again + _A_MOMENT)
        for pod in arrangement.later:
            self._wait_its_turn(pod, Cause.AWAITING_WAVE, None)
        for pod in arrangement.awaited:
            self._wait_its_turn(pod, Cause.AWAITING_COMPLETION, self._at.request.deadline)
        for handover in self._open.values():
            self._follow(handover)
        change = self._at.mode.next_change
        if change is not None and self._standings:
            self._at_moment(change)
        record = replace(
            self._at.record, held_since=self._held, handovers=tuple(self._open.values())
        )
        return PassPlan(
            actions=tuple(self._actions),
            standings=tuple(self._standings),
            record=record,
            held_by=frozenset(self._held_by),
            look_again=min(self._moments, default=None),
        )

    def _reserve_lanes_of_lost_answers(self) -> None:
        """Whose request may have been taken may be on its way: nobody else goes meanwhile."""
        for pod in self._snapshot.pods:
            asked = self._at.asked.get(pod.metadata.uid)
            if asked is not None and asked.lost and self._at.monotonic < asked.retry_at:
                self._lanes.take(self._snapshot.volumes.exclusive_of(pod))

    # ---- pods ------------------------------------------------------------------------------------

    def _treat(self, pod: Pod) -> None:
        """Ask the pod to leave, unless it must not be asked now."""
        if self._is_leaving(pod) or self._awaits_successor(pod):
            return
        at, uid = self._at, pod.metadata.uid
        over = patience_is_over(pod, at.record, at.request.limits, at.now)
        verb = Verb.DELETE if over or not at.evicts else Verb.EVICT
        asked = at.asked.get(uid)
        if asked is not None and asked.verb is verb and at.monotonic < asked.retry_at:
            self._wait_after_refusal(pod, asked, over=over)
            return
        holdings = self._snapshot.volumes.exclusive_of(pod)
        if holdings and not self._lanes.admits(holdings):
            attachers = ", ".join(sorted({h.attacher for h in holdings}))
            self._stand(pod, Cause.AWAITING_LANE, detail=attachers)
            return
        if not over and self._is_held(pod):
            return
        if at.busy_for > 0:
            self._wait_for_the_server(pod)
            return
        if holdings:
            self._lanes.take(holdings)
        self._actions.append(Action(verb, pod))

    def _is_leaving(self, pod: Pod) -> bool:
        uid = pod.metadata.uid
        found = leaving(
            pod, self._at.asked.get(uid), self._open.get(uid), self._at.now, self._at.monotonic
        )
        if found is None:
            return False
        self._stand_leaving(pod, found)
        return True

    def _stand_leaving(self, pod: Pod, found: Leaving) -> None:
        if found.overdue:
            ended = found.until
            self._stand(pod, Cause.OVERDUE, since=ended, detail="its grace period is over")
            return
        self._stand(pod, Cause.LEAVING, since=found.since, until=found.until)
        self._at_moment(found.until)

    def _awaits_successor(self, pod: Pod) -> bool:
        prepared = self._at.prepared
        if prepared is None or prepared.is_seen_to(pod):
            return False
        awaited = prepared.awaited.get(pod.metadata.uid)
        if awaited is None:  # it came into sight in the midst of the pass
            self._stand(pod, Cause.AWAITING_SUCCESSOR)
            self._moments.append(_A_MOMENT)
            return True
        self._stand(
            pod,
            Cause.AWAITING_SUCCESSOR,
            since=awaited.since,
            until=awaited.until,
            detail=awaited.detail,
        )
        return True

    def _wait_for_the_server(self, pod: Pod) -> None:
        """It is not about this pod: nobody's patience is tried."""
        wait = self._at.busy_for
        self._moments.append(wait)
        until = self._at.now + timedelta(seconds=wait)
        self._stand(pod, Cause.SERVER_BUSY, since=self._held.get(pod.metadata.uid), until=until)

    def _wait_after_refusal(self, pod: Pod, asked: Asked, *, over: bool) -> None:
        self._moments.append(asked.retry_at - self._at.monotonic)
        since = self._held.get(pod.metadata.uid, asked.moment)
        until = self._at.request.deadline if over else self._patience_of(pod)
        self._stand(
            pod, asked.cause, since=since, until=until, detail=asked.detail, lasting=asked.lasting
        )

    def _is_held(self, pod: Pod) -> bool:
        """Tell whether budgets hold the pod by what is known of them; who is held is not asked."""
        view, allowances = self._snapshot.budgets_of(pod), self._at.allowances
        if allowances.take(pod, view):
            return False
        self._held_by.update(view.names)
        since = self._held.setdefault(pod.metadata.uid, self._at.now)
        if (wait := allowances.wait(view)) is not None:
            self._moments.append(wait)
        obstacle = allowances.obstacle(view)
        self._stand(
            pod,
            cause_of(obstacle),
            since=since,
            until=self._patience_of(pod),
            detail=view.why_held,
            lasting=obstacle is not None,
        )
        return True

    def _patience_of(self, pod: Pod) -> datetime:
        """Return when the pod is asked another way, and arm for it."""
        deadline = self._at.request.deadline
        since = self._held.get(pod.metadata.uid)
        if since is None:
            return deadline
        ends = patience_ends(since, self._at.request.limits)
        self._at_moment(ends)
        return min(ends, deadline)

    def _wait_its_turn(self, pod: Pod, cause: Cause, until: datetime | None) -> None:
        if not self._is_leaving(pod):
            self._stand(pod, cause, until=until)

    # ---- volumes ---------------------------------------------------------------------------------

    def _follow(self, handover: Handover) -> None:
        """Look again in time; and stand for a pod that is gone."""
        if handover.until is not None:
            self._at_moment(handover.until)
        if handover.pod_uid in self._here:
            return
        cause = Cause.REATTACHING if handover.stage is Stage.DETACHED else Cause.DETACHING
        self._standings.append(
            PodStanding(
                pod=handover.pod_key,
                uid=handover.pod_uid,
                cause=cause,
                since=handover.since,
                until=handover.until,
                detail=handover.reason,
            )
        )

    # ---- the plan --------------------------------------------------------------------------------

    def _stand(
        self,
        pod: Pod,
        cause: Cause,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        detail: str = "",
        lasting: bool = False,
    ) -> None:
        meta = pod.metadata
        self._standings.append(
            PodStanding(
                pod=meta.key,
                uid=meta.uid,
                cause=cause,
                since=since,
                until=until,
                detail=detail,
                lasting=lasting,
            )
        )

    def _at_moment(self, moment: datetime) -> None:
        self._moments.append(max(0.0, (moment - self._at.now).total_seconds()) + _A_MOMENT)


def cause_of(obstacle: Obstacle | None) -> Cause:
    """Return why budgets hold a pod."""
    if obstacle is None:
        return Cause.HELD_BY_BUDGET
    several = obstacle.kind is ObstacleKind.SEVERAL_BUDGETS
    return Cause.SEVERAL_BUDGETS if several else Cause.BUDGET_MISCONFIGURED
