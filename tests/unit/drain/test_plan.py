"""The plan of a pass: where every class of pod goes in every situation, and what always holds."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.api.meta import LabelSelector
from mcm.drain.budgets import Allowances, Disruptions
from mcm.drain.execution import Verb
from mcm.drain.memory import Asked, DrainMemory
from mcm.drain.mode import Force, Mode
from mcm.drain.plan import PassPlan, Situation, carried_on, plan_by_force, plan_gently
from mcm.drain.record import Record, read_record, record_text
from mcm.drain.request import DrainRequest, Limits, Purpose
from mcm.drain.result import Cause, PodStanding
from mcm.drain.selection import arrange
from mcm.drain.snapshot import Snapshot
from mcm.drain.surge import Awaited, Prepared
from mcm.drain.volumes import Handover, Stage, opened
from tests.unit.drain.pods import NOW, budget, pod
from tests.unit.drain.volumes.small_cluster import HERE, SmallCluster

SECOND = timedelta(seconds=1)
GENTLE = Mode(Force.NONE, kubelet_dead=False, next_change=NOW + timedelta(hours=2))


class Drained:
    """A Node with pods, of which some hold volumes; looked at as often as a test wants."""

    def __init__(self, *pods: Pod, budgets: Sequence[PodDisruptionBudget] = ()) -> None:
        self.cluster = SmallCluster()
        self.pods = list(pods)
        self.budgets = list(budgets)
        self.record = Record()
        self.memory = DrainMemory(random.Random(1))
        self.mode = GENTLE
        self.limits = Limits()
        self.now = NOW
        self.evicts = True
        self.prepared: Prepared | None = None
        self.budgets_stale = ""
        self.disruptions = Disruptions(
            pods=lambda _: None, budgets=lambda _: None, random=random.Random(1)
        )

    def stateful(self, name: str, *, attacher: str = "csi", **more: object) -> Pod:
        """Add a pod with one exclusively attached volume."""
        self.cluster.attach(self.cluster.claim(f"data-{name}"), attacher=attacher)
        return self.add(pod(name, claims=(f"data-{name}",), **more))  # type: ignore[arg-type]

    def add(self, subject: Pod) -> Pod:
        self.pods.append(subject)
        return subject

    @property
    def monotonic(self) -> float:
        return (self.now - NOW).total_seconds()

    @property
    def request(self) -> DrainRequest:
        return DrainRequest(
            node=HERE,
            start=NOW,
            deadline=NOW + timedelta(hours=2),
            purpose=Purpose.DELETION,
            limits=self.limits,
        )

    def snapshot(self) -> Snapshot:
        on_node = [_bound(p) for p in self.pods]
        self.cluster.pods = {p.metadata.uid: p for p in on_node}
        return Snapshot(
            node=self.cluster.node,
            pods=tuple(on_node),
            budgets={"default": self.budgets},
            volumes=self.cluster.view(),
            budgets_stale=self.budgets_stale,
        )

    def situation(self) -> Situation:
        snapshot = self.snapshot()
        arrangement = arrange(snapshot.pods, start=NOW, comebacks=self.record.comebacks)
        carried = carried_on(
            self.record.handovers, arrangement.taken, snapshot.volumes, self.limits, self.now
        )
        self.record = replace(self.record, handovers=tuple(h for h in carried if not h.over))
        return Situation(
            request=self.request,
            mode=self.mode,
            snapshot=snapshot,
            arrangement=arrangement,
            record=self.record,
            asked=self.memory.asked,
            allowances=Allowances(
                self.disruptions, now=self.monotonic, observed=not self.budgets_stale
            ),
            width=lambda _: self.limits.lane_width,
            evicts=self.evicts,
            prepared=self.prepared,
            now=self.now,
            monotonic=self.monotonic,
        )

    def plan(self, *, at: float | None = None) -> PassPlan:
        if at is not None:
            self.now = NOW + timedelta(seconds=at)
        step = plan_gently(self.situation())
        self.record = step.record
        return step

    def accept(self, step: PassPlan) -> list[str]:
        """Have the server take all that was planned, before any watch tells; return whose."""
        volumes = self.snapshot().volumes
        for action in step.actions:
            uid = action.pod.metadata.uid
            self.memory.accepted(uid, action.verb, self.monotonic, self.now)
            known = {h.pod_uid for h in self.record.handovers}
            handover = None if uid in known else opened(action.pod, volumes, self.now)
            if handover is not None:
                handovers = (*self.record.handovers, handover)
                self.record = replace(self.record, handovers=handovers)
        return [action.pod.metadata.name for action in step.actions]

    def refuse(self, name: str, cause: Cause = Cause.REFUSED, verb: Verb = Verb.EVICT) -> Asked:
        uid = f"uid-{name}"
        self.record = replace(self.record, held_since={uid: self.now, **self.record.held_since})
        asked = Asked(verb=verb, tries=1, at=self.monotonic, moment=self.now, cause=cause)
        return self.memory.refused(uid, asked)

    def crash(self) -> None:
        """Lose what is not written."""
        self.memory = DrainMemory(random.Random(1))
        self.record = read_record(record_text(self.record)).record


def _bound(subject: Pod) -> Pod:
    spec = msgspec.structs.replace(subject.spec, node_name=HERE)
    return msgspec.structs.replace(subject, spec=spec)


def asked(step: PassPlan) -> list[tuple[Verb, str]]:
    return [(action.verb, action.pod.metadata.name) for action in step.actions]


def names(step: PassPlan) -> list[str]:
    return [action.pod.metadata.name for action in step.actions]


def standing(step: PassPlan, name: str) -> PodStanding:
    (found,) = [s for s in step.standings if s.pod == f"default/{name}"]
    return found


def causes(step: PassPlan) -> Mapping[str, Cause]:
    return {s.pod.removeprefix("default/"): s.cause for s in step.standings}


# ---- which pods ---------------------------------------------------------------------------------


def test_a_node_without_pods_is_drained() -> None:
    assert Drained().plan().finished


def test_what_stays_on_the_node_does_not_keep_the_drain_from_finishing() -> None:
    skipped = pod("skipped", labels={"machine.sapcloud.io/drain": "skip"})
    assert (
        Drained(pod("agent", owner="DaemonSet"), pod("static", mirror=True), skipped)
        .plan()
        .finished
    )


def test_pods_without_volumes_of_their_own_leave_all_at_once() -> None:
    stage = Drained(pod("a"), pod("b"), pod("shared", claims=("nfs",)))
    stage.stateful("done", phase="Succeeded")
    step = stage.plan()
    assert sorted(names(step)) == ["a", "b", "done", "shared"]
    assert {action.verb for action in step.actions} == {Verb.EVICT}
    assert not step.finished


def test_a_pod_that_completes_by_itself_is_waited_for_until_the_deadline() -> None:
    job = pod("job", labels={"machine.sapcloud.io/drain": "wait-completed"})
    step = Drained(job).plan()
    assert asked(step) == []
    assert standing(step, "job").cause is Cause.AWAITING_COMPLETION
    assert standing(step, "job").until == NOW + timedelta(hours=2)


def test_a_wave_begins_when_the_one_before_is_gone() -> None:
    wave = {"machine.sapcloud.io/drain-wave": "1"}
    first, second = pod("first"), pod("second", annotations=wave)
    stage = Drained(first, second)
    step = stage.plan()
    assert names(step) == ["first"]
    assert causes(step) == {"second": Cause.AWAITING_WAVE}
    stage.accept(step)
    stage.pods[0] = pod("first", deleted=NOW - timedelta(hours=1))
    assert causes(stage.plan()) == {"first": Cause.OVERDUE, "second": Cause.AWAITING_WAVE}
    del stage.pods[0]
    assert names(stage.plan()) == ["second"]


# ---- those on their way -------------------------------------------------------------------------


def test_a_pod_whose_successor_is_made_stands_for_it_and_is_asked_when_it_is_seen_to() -> None:
    asks = {"machine.sapcloud.io/drain-surge": "scale"}
    at = Drained(pod("single", annotations=asks), pod("other"))
    awaited = Awaited(NOW, NOW + timedelta(minutes=10), "by scale of its Deployment")
    at.prepared = Prepared(awaited={"uid-single": awaited}, look_again=600.0)
    step = at.plan()
    assert names(step) == ["other"]
    found = standing(step, "single")
    assert found.cause is Cause.AWAITING_SUCCESSOR and found.detail == awaited.detail
    assert (found.since, found.until) == (awaited.since, awaited.until)
    assert step.look_again is not None and 600 <= step.look_again < 601
    at.prepared = Prepared(free=frozenset({"uid-single"}))
    assert set(names(at.plan())) == {"single", "other"}


def test_a_pod_that_nobody_has_seen_to_yet_is_not_asked_in_this_pass() -> None:
    asks = {"machine.sapcloud.io/drain-surge": "restart"}
    at = Drained(pod("single", annotations=asks))
    at.prepared = Prepared()
    step = at.plan()
    assert not step.actions and causes(step) == {"single": Cause.AWAITING_SUCCESSOR}
    assert step.look_again is not None and step.look_again < 1
    at.prepared = None
    assert names(at.plan()) == ["single"], "where nobody sees to successors it goes as others do"


def test_an_accepted_eviction_counts_as_leaving_before_the_watch_tells() -> None:
    stage = Drained(pod("a"))
    stage.accept(stage.plan())
    step = stage.plan(at=1)
    assert asked(step) == []
    assert causes(step) == {"a": Cause.LEAVING}
    assert step.look_again == pytest.approx(119.0, abs=0.01)
    assert names(stage.plan(at=121)) == ["a"], "no sign of it: nothing came of it"


def test_a_pod_may_take_its_grace_period_and_half_a_minute() -> None:
    stage = Drained(pod("a", deleted=NOW + 10 * SECOND))
    step = stage.plan()
    assert causes(step) == {"a": Cause.LEAVING}
    assert standing(step, "a").until == NOW + 40 * SECOND
    assert step.look_again == pytest.approx(40.0, abs=0.01)
    late = stage.plan(at=40)
    assert causes(late) == {"a": Cause.OVERDUE}
    assert standing(late, "a").since == NOW + 40 * SECOND
    assert asked(late) == [], "who ends already is not asked again"


# ---- refusals, budgets, patience ----------------------------------------------------------------


def test_a_refused_pod_is_asked_again_when_its_time_has_come() -> None:
    stage = Drained(pod("a"))
    retry_at = stage.refuse("a").retry_at
    early = stage.plan(at=1)
    assert causes(early) == {"a": Cause.REFUSED}
    assert early.look_again == pytest.approx(retry_at - 1)
    assert names(stage.plan(at=20)) == ["a"]


def test_one_of_three_that_a_budget_allows_is_asked_and_with_none_nobody() -> None:
    pods = [pod(f"p{n}", labels={"app": "a"}) for n in range(3)]
    one = Drained(*pods, budgets=[budget("b", allowed=1, healthy=3, expected=3)]).plan()
    assert names(one) == ["p0"]
    assert set(causes(one).values()) == {Cause.HELD_BY_BUDGET}
    assert one.held_by == {"default/b"}
    none = Drained(*pods, budgets=[budget("b", healthy=2, expected=3)]).plan()
    assert asked(none) == []
    assert len(none.standings) == 3


@pytest.mark.parametrize(
    ("budgets", "cause"),
    [
        ([budget("strict")], Cause.BUDGET_MISCONFIGURED),
        ([budget("x", allowed=1), budget("y", allowed=1)], Cause.SEVERAL_BUDGETS),
    ],
)
def test_who_can_never_go_is_not_asked_and_named_from_the_first_pass(
    budgets: list[PodDisruptionBudget], cause: Cause
) -> None:
    step = Drained(pod("a"), budgets=budgets).plan()
    assert asked(step) == []
    found = standing(step, "a")
    assert (found.cause, found.lasting, found.since) == (cause, True, NOW)
    assert "default/" in found.detail


def test_a_budget_that_comes_to_allow_it_lets_the_pod_go_at_once() -> None:
    stage = Drained(pod("a"), budgets=[budget("b", healthy=0)])
    assert asked(stage.plan()) == []
    stage.budgets = [budget("b", allowed=1, version="2")]
    assert names(stage.plan(at=1)) == ["a"]


def test_one_retry_stands_for_twenty_seconds_and_no_longer() -> None:
    stage = Drained(pod("held"), pod("refused"), budgets=[])
    stage.limits = Limits(retries=1)
    stage.refuse("refused")
    stage.refuse("refused")
    stage.pods[0] = pod("held", labels={"app": "a"})
    stage.budgets = [budget("b", healthy=0)]
    before = stage.plan(at=0)
    assert before.look_again == pytest.approx(20.0, abs=0.01)
    late = stage.plan(at=20)
    assert sorted(asked(late), key=str) == [(Verb.DELETE, "held"), (Verb.DELETE, "refused")]
    assert {action.grace for action in late.actions} == {None}


def test_a_deletion_that_is_refused_waits_its_own_time() -> None:
    stage = Drained(pod("a"))
    stage.limits = Limits(retries=1)
    stage.refuse("a")
    stage.now = NOW + 20 * SECOND
    stage.refuse("a", verb=Verb.DELETE)
    assert asked(stage.plan(at=21)) == []
    assert asked(stage.plan(at=40)) == [(Verb.DELETE, "a")]


def test_no_retries_means_deletion_at_once_and_never_a_hang() -> None:
    stage = Drained(pod("b"), budgets=[budget("strict")])
    stage.stateful("a")
    stage.limits = Limits(retries=0)
    assert asked(stage.plan()) == [(Verb.DELETE, "b"), (Verb.DELETE, "a")]


def test_without_an_eviction_api_pods_are_deleted_within_what_budgets_allow() -> None:
    pods = [pod("a", labels={"app": "a"}), pod("b", labels={"app": "a"})]
    stage = Drained(*pods, budgets=[budget("b", allowed=1, healthy=2, expected=2)])
    stage.evicts = False
    assert asked(stage.plan()) == [(Verb.DELETE, "a")]


def test_what_budgets_say_counts_only_while_it_is_believed() -> None:
    stage = Drained(pod("a"), budgets=[budget("strict")])
    stage.budgets_stale = "nothing was heard of budgets"
    assert names(stage.plan()) == ["a"], "the server knows"


# ---- volumes ------------------------------------------------------------------------------------


def test_pods_with_volumes_leave_one_at_a_time_highest_priority_first() -> None:
    stage = Drained()
    stage.stateful("low")
    stage.stateful("high", priority=10)
    stage.stateful("other", attacher="another")
    step = stage.plan()
    assert names(step) == ["high", "other"]
    assert causes(step) == {"low": Cause.AWAITING_LANE}


def test_a_lane_is_held_until_the_volume_is_attached_elsewhere() -> None:
    stage = Drained()
    stage.stateful("high", priority=10)
    low = stage.stateful("low")
    stage.accept(stage.plan())
    stage.pods = [low]
    gone = stage.plan(at=1)
    assert causes(gone) == {"high": Cause.DETACHING, "low": Cause.AWAITING_LANE}
    stage.cluster.detach("pv-data-high")
    assert causes(stage.plan(at=2)) == {"high": Cause.REATTACHING, "low": Cause.AWAITING_LANE}
    stage.cluster.attach("pv-data-high", "node-b")
    assert names(stage.plan(at=3)) == ["low"]


def test_a_lane_is_free_when_the_limits_are_over() -> None:
    stage = Drained()
    stage.stateful("high", priority=10)
    low = stage.stateful("low")
    stage.accept(stage.plan())
    stage.pods = [low]
    held = stage.plan(at=1)
    assert held.look_again == pytest.approx(149.0, abs=0.01), "its grace period, and two minutes"
    assert asked(stage.plan(at=149)) == []
    assert names(stage.plan(at=150)) == ["low"]


def test_a_pod_that_a_budget_holds_lets_the_next_pass_and_that_one_keeps_the_lane() -> None:
    stage = Drained(budgets=[budget("b", healthy=0)])
    stage.stateful("high", priority=10)
    low = stage.stateful("low", namespace="default")
    stage.budgets = [replace_selector(budget("b", healthy=0), "high")]
    stage.pods[0] = with_label(stage.pods[0], "high")
    first = stage.plan()
    assert names(first) == ["low"]
    stage.accept(first)
    stage.budgets = [replace_selector(budget("b", allowed=1, version="2"), "high")]
    after = stage.plan(at=1)
    assert asked(after) == []
    assert causes(after) == {"high": Cause.AWAITING_LANE, "low": Cause.LEAVING}
    assert low.metadata.uid in {h.pod_uid for h in after.record.handovers}


def test_a_pod_that_others_delete_takes_the_lane_as_well() -> None:
    stage = Drained()
    stage.stateful("going", deleted=NOW + 20 * SECOND)
    stage.stateful("next")
    step = stage.plan()
    assert causes(step) == {"going": Cause.LEAVING, "next": Cause.AWAITING_LANE}
    assert [h.pod_uid for h in step.record.handovers] == ["uid-going"]


def test_a_request_whose_answer_was_lost_holds_the_lane_for_a_while() -> None:
    stage = Drained()
    stage.stateful("high", priority=10)
    stage.stateful("low")
    lost = Asked(verb=Verb.EVICT, tries=1, at=0.0, moment=NOW, lost=True)
    stage.memory.refused("uid-high", lost)
    step = stage.plan(at=1)
    assert asked(step) == []
    assert causes(step) == {"high": Cause.REFUSED, "low": Cause.AWAITING_LANE}


def replace_selector(subject: PodDisruptionBudget, app: str) -> PodDisruptionBudget:
    spec = msgspec.structs.replace(subject.spec, selector=LabelSelector(match_labels={"app": app}))
    return msgspec.structs.replace(subject, spec=spec)


def with_label(subject: Pod, app: str) -> Pod:
    metadata = msgspec.structs.replace(subject.metadata, labels={"app": app})
    return msgspec.structs.replace(subject, metadata=metadata)


# ---- force --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dead", "grace"), [(True, 0), (False, 1)])
def test_force_deletes_everything_at_once_with_no_grace_only_if_no_kubelet_lives(
    grace: int, *, dead: bool
) -> None:
    stage = Drained(pod("a"), pod("ds", owner="DaemonSet"), budgets=[budget("strict")])
    stage.stateful("v")
    stage.stateful("w")
    stage.mode = Mode(Force.LABEL, kubelet_dead=dead, next_change=None)
    step = plan_by_force(stage.situation())
    assert asked(step) == [(Verb.DELETE, "a"), (Verb.DELETE, "v"), (Verb.DELETE, "w")]
    assert {action.grace for action in step.actions} == {grace}
    assert not step.standings


def test_a_waiting_drain_wakes_when_its_mode_changes() -> None:
    stage = Drained(pod("a", deleted=NOW + timedelta(minutes=10)))
    stage.mode = Mode(Force.NONE, kubelet_dead=False, next_change=NOW + 5 * SECOND)
    step = stage.plan()
    assert step.look_again == pytest.approx(5.0, abs=0.01)
    assert step.look_again is not None and step.look_again > 5.0


# ---- what always holds --------------------------------------------------------------------------

kinds = st.lists(
    st.tuples(
        st.sampled_from(["plain", "stateful", "other attacher", "finished", "awaited"]),
        st.integers(-1, 1),
        st.sampled_from([None, -3600, 9]),
        st.sampled_from(["", "refused", "held"]),
        st.sampled_from(["x", "y"]),
    ),
    max_size=7,
)
allowed = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 2), max_size=2)


def staged(
    pods: list[tuple[str, int, int | None, str, str]], allows: dict[str, int], width: int
) -> Drained:
    stage = Drained()
    stage.limits = Limits(lane_width=width)
    for index, (kind, priority, ends, past, app) in enumerate(pods):
        name = f"p{index}"
        deleted: datetime | None = None if ends is None else NOW + timedelta(seconds=ends)
        labels = {"app": app}
        if kind in ("stateful", "other attacher"):
            attacher = "csi" if kind == "stateful" else "b"
            stage.stateful(
                name, attacher=attacher, priority=priority, deleted=deleted, labels=labels
            )
        else:
            if kind == "awaited":
                labels["machine.sapcloud.io/drain"] = "wait-completed"
            phase = "Succeeded" if kind == "finished" else "Running"
            stage.add(pod(name, priority=priority, deleted=deleted, labels=labels, phase=phase))
        if past == "refused":
            stage.refuse(name)
        elif past == "held":
            stage.record = replace(
                stage.record, held_since={**stage.record.held_since, f"uid-{name}": NOW}
            )
    stage.budgets = [
        replace_selector(budget(app, allowed=left, healthy=5, expected=9), app)
        for app, left in allows.items()
    ]
    return stage


@given(pods=kinds, allows=allowed, width=st.integers(1, 3), at=st.floats(0, 7100))
def test_every_pod_is_accounted_for_once_and_waiting_has_an_end(
    pods: list[tuple[str, int, int | None, str, str]],
    allows: dict[str, int],
    width: int,
    at: float,
) -> None:
    stage = staged(pods, allows, width)
    step = stage.plan(at=at)
    seen = [a.pod.metadata.uid for a in step.actions] + [s.uid for s in step.standings]
    assert sorted(seen) == sorted(p.metadata.uid for p in stage.pods)
    assert not step.standings or (step.look_again is not None and step.look_again > 0)


@given(
    pods=kinds,
    allows=allowed,
    width=st.integers(1, 3),
    passes=st.lists(st.tuples(st.floats(0, 400), st.sets(st.integers(0, 6))), max_size=4),
)
def test_no_lane_is_too_full_and_no_budget_overdrawn_whatever_is_refused(
    pods: list[tuple[str, int, int | None, str, str]],
    allows: dict[str, int],
    width: int,
    passes: list[tuple[float, set[int]]],
) -> None:
    stage = staged(pods, allows, width)
    already: dict[str, int] = {}
    for handover in carried_on((), stage.pods, stage.snapshot().volumes, stage.limits, NOW):
        for attacher in handover.attachers:
            already[attacher] = already.get(attacher, 0) + (not handover.over)
    for wait, refused in passes:
        stage.now += timedelta(seconds=wait)
        step = stage.plan()
        evicted: dict[str, int] = {}
        for action in step.actions:
            if action.verb is Verb.EVICT and action.pod.status.phase == "Running":
                app = action.pod.metadata.labels["app"]
                evicted[app] = evicted.get(app, 0) + 1
        assert all(evicted.get(app, 0) <= left for app, left in allows.items())
        for action in step.actions:
            index = int(action.pod.metadata.name[1:])
            if index in refused:
                stage.refuse(action.pod.metadata.name, verb=action.verb)
            else:
                stage.accept(replace(step, actions=(action,)))
        under_way: dict[str, int] = {}
        for handover in stage.record.handovers:
            for attacher in handover.attachers:
                under_way[attacher] = under_way.get(attacher, 0) + (not handover.over)
        assert all(n <= max(width, already.get(a, 0)) for a, n in under_way.items())


@given(pods=kinds, allows=allowed, at=st.integers(1, 60))
def test_after_a_crash_nobody_with_volumes_is_asked_twice_and_no_patience_forgotten(
    pods: list[tuple[str, int, int | None, str, str]], allows: dict[str, int], at: int
) -> None:
    stage = staged(pods, allows, 1)
    first = stage.plan()
    stage.accept(first)
    held = dict(stage.record.held_since)
    on_their_way: Sequence[Handover] = stage.record.handovers
    stage.crash()
    again = stage.plan(at=float(at))
    asked_again = {a.pod.metadata.uid for a in again.actions}
    assert not asked_again & {h.pod_uid for h in on_their_way if h.stage is Stage.ASKED}
    assert {u: s for u, s in stage.record.held_since.items() if u in held} == held
