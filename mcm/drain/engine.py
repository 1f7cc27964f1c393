"""One pass over a drain: plan, ask, note the answers, and plan again until nothing is to be asked.

It knows neither machines nor controllers: whoever wants a Node empty asks by a request, keeps the
record, and calls again when what was looked at has changed, or after the time that is answered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, final

from mcm.clock import Clock
from mcm.drain.budgets import Allowances, Disruptions
from mcm.drain.execution import Action, Answer, Answered, AnswerKind, PodRequests
from mcm.drain.memory import Asked, DrainMemory, Watched
from mcm.drain.mode import Mode, mode_of
from mcm.drain.observation import Observation
from mcm.drain.pass_turns import LOOK_AGAIN, PassTurns
from mcm.drain.plan import PassPlan, Situation, carried_on, plan_by_force, plan_gently
from mcm.drain.record import Record
from mcm.drain.refusal import Meaning, meaning_of
from mcm.drain.request import DrainRequest
from mcm.drain.result import Done, DrainResult, Quiet, TimedOut, Working
from mcm.drain.selection import (
    Arrangement,
    Remark,
    RemarkKind,
    arrange,
    with_eviction,
)
from mcm.drain.selection.remarks import to_mend
from mcm.drain.snapshot import Snapshot
from mcm.drain.surge import Prepared, Surges
from mcm.drain.volumes import Handover, LaneWidths, opened
from mcm.drain.witness import DrainWitness, NoWitness
from mcm.tracing import NO_TRACES, Tracer
from mcm.wording import first_few

QUIET_FOR: Final = 1.0
"""Seconds after the Node was marked in which the scheduler may not know of it yet. Where no pod
awaits the scheduler, none is on its way, and nobody waits."""
_NAMED: Final = 3
_A_MOMENT: Final = 0.001
"""Seconds by which a timer may be early."""
BLIND_FOR: Final = 10.0
"""Seconds after which one looks whether anything can be observed, though nobody said so."""


@final
class DrainEngine:
    """Drains the Nodes of one cluster, a pass at a time; never waits for a pod.

    ``requests``, ``disruptions``, ``turns`` and ``widths`` are shared by all drains of the cluster.
    """

    def __init__(
        self,
        observation: Observation,
        requests: PodRequests,
        *,
        clock: Clock,
        disruptions: Disruptions,
        turns: PassTurns,
        widths: LaneWidths | None = None,
        witness: DrainWitness | None = None,
        surges: Surges | None = None,
        tracer: Tracer = NO_TRACES,
    ) -> None:
        self.tracer = tracer
        self.observation = observation
        self.requests = requests
        self.clock = clock
        self.disruptions = disruptions
        self.turns = turns
        self.widths = widths or LaneWidths()
        self.witness = witness or NoWitness()
        self.surges = surges

    async def pass_over(
        self, request: DrainRequest, record: Record, memory: DrainMemory
    ) -> tuple[DrainResult, Record]:
        """Do one pass over the Node, which was marked before; return the record as it is now.

        No answer about a pod is raised. A pass may be cancelled at any await and repeated by
        anyone: each request bears the pod's UID.
        """
        with self.tracer.span("drain pass", {"k8s.node.name": request.node}) as span:
            result, record = await _Pass(self, request, record, memory).run()
            span.set("mcm.drain.result", type(result).__name__)
        return result, record


@final
class _Pass:
    """One pass over one Node."""

    def __init__(
        self, engine: DrainEngine, request: DrainRequest, record: Record, memory: DrainMemory
    ) -> None:
        self._engine = engine
        self._request = request
        self._memory = memory
        self._snapshot: Snapshot = engine.observation.snapshot(request.node, record.handovers)
        self._mode: Mode = self._mode_now()
        self._prepared: Prepared | None = None
        self._record = replace(
            record, start=request.start, deadline=request.deadline, mode=self._mode.force.value
        )

    async def run(self) -> tuple[DrainResult, Record]:
        began_at = self._memory.begin(self._engine.clock.monotonic())
        if self._mode.forced:
            if not self._request.may_force:
                return TimedOut(self._plan().standings, self._mode.force), self._record
            return await self._force(), self._record
        if self._snapshot.blind:
            return self._blind(), self._record
        await self._see_to_successors()
        plan = await self._ask_all(self._plan())
        self._record = plan.record
        self._watch(plan)
        if plan.finished:
            return self._ended(began_at), self._record
        return Working(pods=plan.standings, look_again=plan.look_again), self._record

    def _mode_now(self) -> Mode:
        request, node = self._request, self._snapshot.node
        return mode_of(
            node.status.conditions if node is not None else request.last_conditions,
            force_asked=request.force_asked,
            deadline=request.deadline,
            now=self._engine.clock.now(),
        )

    def _arrangement(self) -> Arrangement:
        return arrange(
            self._snapshot.pods,
            start=self._request.start,
            settings=self._request.waves,
            comebacks=self._record.comebacks,
            barrier=self._request.barrier,
        )

    async def _see_to_successors(self) -> None:
        """Have successors made for the pods that want one before they go; and say of all pods what
        somebody should mend."""
        arrangement = self._arrangement()
        for remark in to_mend(arrangement):
            self._memory.remark(remark)
        if self._engine.surges is None:
            return
        volumes = self._snapshot.volumes
        self._prepared = await self._engine.surges.prepare(
            arrangement.due,
            deadline=self._request.deadline,
            exclusive=lambda pod: bool(volumes.exclusive_of(pod)),
        )
        for pod in arrangement.due:
            if why := self._prepared.said.get(pod.metadata.uid):
                text = f"it gets no successor before it goes: {why}"
                self._memory.remark(Remark(pod, RemarkKind.NO_SUCCESSOR, text))
        if self._prepared.free or self._prepared.awaited:
            self._snapshot = self._observed()

    # ---- by force --------------------------------------------------------------------------------

    async def _force(self) -> Done:
        """Delete what is there, and wait for nothing."""
        plan = plan_by_force(self._situation(self._arrangement()))
        answered = await self._engine.requests.carry_out(
            self._request.node, plan.actions, budgets=self._snapshot.budgets_of, urgent=True
        )
        answers = {a.action.pod.metadata.uid: a.answer for a in answered}
        refused = (_refused(a, answers.get(a.pod.metadata.uid)) for a in plan.actions)
        listed = first_few(sorted(filter(None, refused)), _NAMED, separator="; ")
        return Done(self._mode.force, listed)

    # ---- by eviction -----------------------------------------------------------------------------

    async def _ask_all(self, plan: PassPlan) -> PassPlan:
        """Ask until nothing more is to be asked now: each pod once, or in two ways."""
        if not plan.actions:
            return plan
        with self._engine.turns.turn(self._request.node) as has_turn:
            if not has_turn:
                wait = min(LOOK_AGAIN, plan.look_again or LOOK_AGAIN)
                return replace(plan, look_again=wait)
            for _ in range(2 * len(self._snapshot.pods) + 1):
                self._record = plan.record
                answers = await self._send(plan.actions)
                for answered in answers:
                    self._note(answered.action, answered.answer)
                spared = len(answers) < len(plan.actions)
                self._snapshot = self._observed()
                plan = self._plan()
                if spared or not plan.actions or self._is_cut_short():
                    break
        if self._is_cut_short():
            return replace(plan, look_again=_A_MOMENT)
        return replace(plan, look_again=LOOK_AGAIN) if plan.actions else plan

    def _is_cut_short(self) -> bool:
        """Something else is wanted by now, or force is due: this pass is not to go on."""
        return self._memory.interruption.called or self._mode_now().forced

    def _observed(self) -> Snapshot:
        return self._engine.observation.snapshot(self._request.node, self._record.handovers)

    def _plan(self) -> PassPlan:
        self._memory.keep_only({pod.metadata.uid for pod in self._snapshot.pods})
        arrangement = self._arrangement()
        self._carry_on(arrangement)
        return plan_gently(self._situation(arrangement))

    def _carry_on(self, arrangement: Arrangement) -> None:
        """Bring the handovers to where they are now; who is over teaches, and is told."""
        before = {handover.pod_uid: handover for handover in self._record.handovers}
        now = carried_on(
            before.values(),
            arrangement.taken,
            self._snapshot.volumes,
            self._request.limits,
            self._engine.clock.now(),
            let_go=self._memory.let_go,
        )
        for handover in now:
            if handover.late:
                self._memory.let_go.update(holding.volume for holding in handover.volumes)
            if (known := before.get(handover.pod_uid)) is not None:
                self._engine.widths.learn(known, handover)
                if handover.over and not known.over:
                    self._engine.witness.handed_over(self._request, handover)
        still_open = tuple(handover for handover in now if not handover.over)
        self._record = replace(self._record, handovers=still_open)

    def _situation(self, arrangement: Arrangement) -> Situation:
        engine, limits = self._engine, self._request.limits
        monotonic = engine.clock.monotonic()
        return Situation(
            request=self._request,
            mode=self._mode,
            snapshot=self._snapshot,
            arrangement=arrangement,
            record=self._record,
            asked=self._memory.asked,
            prepared=self._prepared,
            allowances=Allowances(
                engine.disruptions,
                now=monotonic,
                observed=not self._snapshot.budgets_stale,
                checked=not engine.requests.api.missing,
            ),
            width=lambda attacher: engine.widths.of(attacher, limits),
            busy_for=engine.requests.busy_for(self._request.node),
            evicts=not engine.requests.api.missing,
            now=engine.clock.now(),
            monotonic=monotonic,
        )

    # ---- requests and answers --------------------------------------------------------------------

    async def _send(self, actions: tuple[Action, ...]) -> tuple[Answered, ...]:
        """Make the requests side by side; those that a busy server is spared get no answer, and
        none is waited for beyond the time for force."""
        return await self._engine.requests.carry_out(
            self._request.node,
            actions,
            budgets=self._snapshot.budgets_of,
            interruption=self._memory.interruption,
            within=self._until_force(),
        )

    def _until_force(self) -> float | None:
        change = self._mode.next_change
        if change is None:
            return None
        left = (change - self._engine.clock.now()).total_seconds()
        return max(0.0, left) + _A_MOMENT

    def _note(self, action: Action, answer: Answer) -> None:
        """Remember what the answer means for the pod."""
        clock, pod = self._engine.clock, action.pod
        uid, now, monotonic = pod.metadata.uid, clock.now(), clock.monotonic()
        if answer.is_over:
            self._memory.accepted(uid, action.verb, monotonic, now)
            self._open(action, answer)
            return
        if answer.kind in (AnswerKind.NO_EVICTION_API, AnswerKind.SERVER_BUSY):
            return  # it is planned anew: without evictions, or once the server has time
        meaning: Meaning = meaning_of(answer, self._snapshot.budgets_of(pod))
        if meaning.tries_patience and uid not in self._record.held_since:
            held = {**self._record.held_since, uid: now}
            self._record = replace(self._record, held_since=held)
        if not meaning.is_for_disruptions:
            asked = Asked(
                verb=action.verb,
                tries=1,
                at=monotonic,
                moment=now,
                lost=answer.kind is AnswerKind.LOST,
                cause=meaning.cause,
                detail=meaning.detail,
                lasting=answer.lasting,
            )
            self._memory.refused(uid, asked, at_least=answer.retry_after or 0.0)

    def _open(self, action: Action, answer: Answer) -> None:
        """Begin the handover of a pod that goes; and count it, if it had come back."""
        pod, now = action.pod, self._engine.clock.now()
        handovers = self._record.handovers
        handover: Handover | None = opened(pod, self._snapshot.volumes, now)
        if handover is not None and all(h.pod_uid != handover.pod_uid for h in handovers):
            handovers = (*handovers, handover)
        comebacks = self._record.comebacks
        if answer.kind is AnswerKind.ACCEPTED:
            start, barrier = self._request.start, self._request.barrier
            comebacks = with_eviction(comebacks, pod, start=start, now=now, barrier=barrier)
        self._record = replace(self._record, handovers=handovers, comebacks=comebacks)

    # ---- what is answered ------------------------------------------------------------------------

    def _blind(self) -> Working:
        until_force = self._until_force()
        wait = BLIND_FOR if until_force is None else min(BLIND_FOR, until_force)
        return Working(look_again=wait, blind=self._snapshot.blind)

    def _ended(self, began_at: float) -> DrainResult:
        left = began_at + QUIET_FOR - self._engine.clock.monotonic()
        if self._snapshot.may_get_pods and left > _A_MOMENT:
            return Quiet(left)
        return Done()

    def _watch(self, plan: PassPlan) -> None:
        holdings = [h for handover in plan.record.handovers for h in handover.volumes]
        self._memory.watched = Watched(
            budgets=plan.held_by,
            claims=frozenset(h.claim for h in holdings),
            volumes=frozenset(h.volume for h in holdings),
        )


def _refused(action: Action, answer: Answer | None) -> str:
    """Say why a pod could not be deleted by force; empty if it could."""
    if answer is not None and answer.is_over:
        return ""
    reason = answer.text if answer is not None else "the server has too much to do"
    return f"pod {action.pod.metadata.key}: {reason}"
