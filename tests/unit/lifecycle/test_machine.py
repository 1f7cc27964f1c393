"""The state machine of a life: what each input leads to, and what holds whatever comes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.leaderelection import LeadershipLost
from mcm.lifecycle import Components, Kind, Lifecycle, Stage, TaskName
from mcm.lifecycle.actions import Action, Cancel, Finish, Lead, ShutDownQueues, Start
from mcm.lifecycle.inputs import Begin, Input, LeaseWon, StopAsked, TaskEnded, TimePassed
from mcm.lifecycle.machine import HURRIED

GRACE = 20.0
COMPONENTS = Components(
    mirrors=("control",),
    leases=("first", "second"),
    services=("events", "cloud"),
    controllers=("sets", "machines"),
)
CHECKS, SYNC = TaskName(Kind.CHECKS), TaskName(Kind.SYNC)
MIRROR = TaskName(Kind.MIRROR, "control")
FIRST, SECOND = TaskName(Kind.LEASE, "first"), TaskName(Kind.LEASE, "second")
EVENTS, CLOUD = TaskName(Kind.SERVICE, "events"), TaskName(Kind.SERVICE, "cloud")
SETS, MACHINES = TaskName(Kind.CONTROLLER, "sets"), TaskName(Kind.CONTROLLER, "machines")
RELEASES = (TaskName(Kind.RELEASE, "first"), TaskName(Kind.RELEASE, "second"))
LOST = LeadershipLost("held by another")
BROKEN = RuntimeError("broken")


def life(*events: Input, components: Components = COMPONENTS, now: float = 0.0) -> Lifecycle:
    lifecycle = Lifecycle(components, grace_period=GRACE)
    for event in (Begin(), *events):
        lifecycle.handle(event, now)
    return lifecycle


def waiting() -> Lifecycle:
    return life(TaskEnded(CHECKS))


def leading() -> Lifecycle:
    return life(TaskEnded(CHECKS), TaskEnded(SYNC), LeaseWon("first"), LeaseWon("second"))


def ended(lifecycle: Lifecycle, *tasks: TaskName, now: float) -> list[Action]:
    return [action for task in tasks for action in lifecycle.handle(TaskEnded(task), now)]


# ---- the way up ---------------------------------------------------------------------------------


def test_the_servers_are_checked_before_anything_else() -> None:
    lifecycle = Lifecycle(COMPONENTS)
    assert lifecycle.handle(Begin(), 0.0) == [Start(CHECKS)]
    assert lifecycle.stage is Stage.CHECKING and lifecycle.deadline is None
    assert lifecycle.handle(Begin(), 0.0) == [], "there is one beginning"


def test_mirrors_fill_while_both_leases_are_contended_for_at_once() -> None:
    lifecycle = life()
    assert lifecycle.handle(TaskEnded(CHECKS), 0.0) == [
        Start(MIRROR),
        Start(SYNC),
        Start(FIRST),
        Start(SECOND),
    ]


@pytest.mark.parametrize(
    "order",
    [
        [TaskEnded(SYNC), LeaseWon("first"), LeaseWon("second")],
        [LeaseWon("first"), TaskEnded(SYNC), LeaseWon("second")],
        [LeaseWon("second"), LeaseWon("first"), TaskEnded(SYNC)],
    ],
)
def test_work_begins_once_the_mirrors_are_synced_and_every_lease_is_held(
    order: list[Input],
) -> None:
    lifecycle = waiting()
    for event in order[:-1]:
        assert lifecycle.handle(event, 0.0) == []
        assert lifecycle.stage is Stage.WAITING
    assert lifecycle.handle(order[-1], 0.0) == [
        Lead(),
        *(Start(task) for task in (EVENTS, CLOUD, SETS, MACHINES)),
    ]
    assert lifecycle.stage is Stage.LEADING


def test_without_leases_work_begins_once_the_mirrors_are_synced() -> None:
    alone = life(TaskEnded(CHECKS), components=Components(mirrors=("m",), controllers=("c",)))
    assert alone.handle(TaskEnded(SYNC), 0.0) == [Lead(), Start(TaskName(Kind.CONTROLLER, "c"))]


def test_one_lease_of_two_is_no_reason_to_work_nor_its_loss_to_end() -> None:
    lifecycle = life(TaskEnded(CHECKS), TaskEnded(SYNC), LeaseWon("first"))
    assert lifecycle.handle(TaskEnded(FIRST, LOST), 1.0) == [Start(FIRST)]
    assert lifecycle.handle(LeaseWon("second"), 2.0) == []
    assert lifecycle.stage is Stage.WAITING


def test_a_loss_after_both_were_held_is_the_end_even_before_work_began() -> None:
    lifecycle = life(TaskEnded(CHECKS), LeaseWon("first"), LeaseWon("second"))
    assert Cancel(SYNC) in lifecycle.handle(TaskEnded(FIRST, LOST), 1.0)
    assert lifecycle.stopping


# ---- the way down -------------------------------------------------------------------------------


def test_a_stop_goes_down_stage_by_stage_and_releases_last() -> None:
    lifecycle = leading()
    assert lifecycle.handle(StopAsked(), 100.0) == [ShutDownQueues()]
    assert _due(lifecycle) == 110.0
    assert ended(lifecycle, SETS, now=101.0) == []
    assert ended(lifecycle, MACHINES, now=102.0) == [Cancel(EVENTS), Cancel(CLOUD)]
    assert ended(lifecycle, CLOUD, now=103.0) == []
    assert ended(lifecycle, EVENTS, now=104.0) == [Cancel(FIRST), Cancel(SECOND), Cancel(MIRROR)]
    assert ended(lifecycle, SECOND, now=104.0) == [Start(RELEASES[1])]
    assert ended(lifecycle, FIRST, MIRROR, now=104.0) == [Start(RELEASES[0])]
    assert ended(lifecycle, *RELEASES, now=105.0) == [Finish(None)]
    assert lifecycle.stage is Stage.ENDED and _due(lifecycle) is None
    assert lifecycle.handle(StopAsked(at_once=True), 106.0) == (), "what is over stays over"


def test_a_stop_during_the_first_checks_cancels_them_and_has_nothing_to_release() -> None:
    lifecycle = life()
    assert lifecycle.handle(StopAsked(), 1.0) == [ShutDownQueues(), Cancel(CHECKS)]
    assert lifecycle.handle(TaskEnded(CHECKS), 1.0) == [Finish(None)]


def test_a_stop_before_the_beginning_is_the_end() -> None:
    lifecycle = Lifecycle(COMPONENTS)
    assert lifecycle.handle(StopAsked(), 1.0) == [ShutDownQueues(), Finish(None)]
    assert lifecycle.handle(Begin(), 1.0) == ()


def test_a_candidate_gives_up_what_may_be_its_own() -> None:
    lifecycle = waiting()
    assert lifecycle.handle(StopAsked(), 1.0) == [
        ShutDownQueues(),
        Cancel(SYNC),
        Cancel(FIRST),
        Cancel(SECOND),
        Cancel(MIRROR),
    ]
    ended(lifecycle, SYNC, FIRST, SECOND, MIRROR, now=1.0)
    assert lifecycle.running == set(RELEASES)


def test_a_lost_lease_cancels_the_work_under_way_and_keeps_the_other_until_it_has_ended() -> None:
    lifecycle = leading()
    assert lifecycle.handle(TaskEnded(SECOND, LOST), 50.0) == [
        ShutDownQueues(),
        Cancel(SETS),
        Cancel(MACHINES),
    ]
    assert FIRST in lifecycle.running
    ended(lifecycle, SETS, MACHINES, EVENTS, CLOUD, now=51.0)
    assert FIRST in lifecycle.running, "renewed until it is told to end"
    ended(lifecycle, FIRST, MIRROR, *RELEASES, now=52.0)
    assert lifecycle.stage is Stage.ENDED


def test_the_second_loss_does_not_cut_the_cleanup_after_the_first() -> None:
    lifecycle = leading()
    lifecycle.handle(TaskEnded(FIRST, LOST), 50.0)
    assert lifecycle.handle(TaskEnded(SECOND, LOST), 50.0) == []
    assert lifecycle.handle(TimePassed(), 51.0) == []
    down = [EVENTS, CLOUD, MIRROR, *RELEASES]
    assert ended(lifecycle, SETS, MACHINES, *down, now=52.0)[-1] == Finish(LOST)


def test_a_lease_lost_while_work_is_finished_cancels_what_is_in_flight() -> None:
    lifecycle = leading()
    lifecycle.handle(StopAsked(), 100.0)
    assert lifecycle.handle(TaskEnded(FIRST, LOST), 101.0) == [Cancel(SETS), Cancel(MACHINES)]


@pytest.mark.parametrize("task", [SETS, CLOUD, MIRROR])
@pytest.mark.parametrize("error", [None, BROKEN])
def test_what_ends_by_itself_ends_the_life(task: TaskName, error: Exception | None) -> None:
    lifecycle = leading()
    assert lifecycle.handle(TaskEnded(task, error), 5.0)[0] == ShutDownQueues()
    others = lifecycle.running - {task}
    actions = ended(lifecycle, *sorted(others, key=_winding_down), *RELEASES, now=6.0)
    (finish,) = (action for action in actions if isinstance(action, Finish))
    assert finish.error is error or f"{task} ended by itself" in str(finish.error)
    assert task.name in lifecycle.failed, "liveness tells of each of them"


@pytest.mark.parametrize("task", [CHECKS, SYNC])
def test_a_failed_beginning_ends_the_life_with_its_error(task: TaskName) -> None:
    lifecycle = life() if task is CHECKS else waiting()
    lifecycle.handle(TaskEnded(task, BROKEN), 0.0)
    actions = ended(lifecycle, FIRST, SECOND, MIRROR, *RELEASES, now=0.0)
    assert lifecycle.stage is Stage.ENDED
    assert task is CHECKS or actions[-1] == Finish(BROKEN)


def test_the_first_cause_is_the_result() -> None:
    lifecycle = leading()
    lifecycle.handle(TaskEnded(SETS, BROKEN), 0.0)
    lifecycle.handle(TaskEnded(FIRST, LOST), 0.0)
    lifecycle.handle(StopAsked(), 0.0)
    rest = (MACHINES, EVENTS, CLOUD, SECOND, MIRROR, *RELEASES)
    assert ended(lifecycle, *rest, now=1.0)[-1] == Finish(BROKEN)


# ---- what does not end --------------------------------------------------------------------------


def test_each_deadline_strikes_once_and_the_last_one_leaves_behind_what_does_not_end() -> None:
    lifecycle = leading()
    lifecycle.handle(StopAsked(), 100.0)
    assert lifecycle.handle(TimePassed(), 109.9) == []
    assert lifecycle.handle(TimePassed(), 110.0) == [Cancel(SETS), Cancel(MACHINES)]
    assert lifecycle.handle(TimePassed(), 110.1) == []
    work = [Cancel(task) for task in (EVENTS, CLOUD, SETS, MACHINES)]
    assert sorted(map(str, lifecycle.handle(TimePassed(), 115.0))) == sorted(map(str, work))
    everything = lifecycle.handle(TimePassed(), 119.0)
    assert {a.task for a in everything if isinstance(a, Cancel)} == lifecycle.running
    ended(lifecycle, *(lifecycle.running - {SETS}), now=119.5)
    assert lifecycle.handle(TimePassed(), 119.9) == []
    assert lifecycle.handle(TimePassed(), 120.0) == [Finish(None, left=(SETS,))]


def test_leases_are_not_released_under_work_that_does_not_end() -> None:
    lifecycle = leading()
    lifecycle.handle(StopAsked(), 0.0)
    lifecycle.handle(TimePassed(), 19.0)
    actions = ended(lifecycle, FIRST, SECOND, MIRROR, EVENTS, CLOUD, MACHINES, SETS, now=19.5)
    assert actions == [Finish(None)], "and it is too late to begin with it afterwards"


def test_a_second_stop_hurries_and_yet_goes_down_in_order() -> None:
    lifecycle = leading()
    lifecycle.handle(StopAsked(), 100.0)
    actions = lifecycle.handle(StopAsked(at_once=True), 101.0)
    assert {a.task for a in actions if isinstance(a, Cancel)} == {SETS, MACHINES, EVENTS, CLOUD}
    assert lifecycle.deadline is not None and lifecycle.deadline < 101.0 + HURRIED
    ended(lifecycle, SETS, MACHINES, EVENTS, CLOUD, MIRROR, FIRST, SECOND, now=101.0)
    assert lifecycle.running == set(RELEASES)
    assert lifecycle.handle(TimePassed(), 101.0 + HURRIED)[-1] == Finish(None, left=RELEASES)


def test_a_second_stop_never_lengthens_the_grace_period() -> None:
    lifecycle = leading()
    lifecycle.handle(StopAsked(), 100.0)
    lifecycle.handle(StopAsked(at_once=True), 119.8)
    assert isinstance(lifecycle.handle(TimePassed(), 120.0)[-1], Finish)


# ---- whatever comes -----------------------------------------------------------------------------


def _due(lifecycle: Lifecycle) -> float | None:
    return lifecycle.deadline


def _winding_down(task: TaskName) -> int:
    order = (Kind.CHECKS, Kind.SYNC, Kind.CONTROLLER, Kind.SERVICE, Kind.LEASE, Kind.MIRROR)
    return order.index(task.kind)


ACTING = (Kind.SERVICE, Kind.CONTROLLER)


class Checked:
    """Carries a life's actions out on paper, and holds each against what must always be true."""

    def __init__(self) -> None:
        self.lifecycle = Lifecycle(COMPONENTS, grace_period=GRACE)
        self.now = 0.0
        self.running: set[TaskName] = set()
        self.held: set[str] = set()
        self.stopped_at: float | None = None
        self.finish: Finish | None = None
        self.cancelled: set[TaskName] = set()

    @property
    def left(self) -> Sequence[TaskName]:
        return self.finish.left if self.finish is not None else ()

    def obey(self) -> None:
        """Let everything end that was cancelled, and servers answer to releases."""
        while ending := {t for t in self.running if t in self.cancelled or t.kind is Kind.RELEASE}:
            self.feed(TaskEnded(min(ending, key=str)))

    def feed(self, event: Input) -> None:
        if isinstance(event, TaskEnded):
            self.running.discard(event.task)
            if event.task.kind is Kind.LEASE:
                self.held.discard(event.task.name)
        if isinstance(event, LeaseWon):
            self.held.add(event.lease)
        self._carry_out(self.lifecycle.handle(event, self.now))
        assert self.finish is not None or self.running == self.lifecycle.running

    def _carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:
            assert self.finish is None, "nothing follows the end"
            match action:
                case Start(task):
                    self._check_start(task)
                    self.cancelled.discard(task)
                    self.running.add(task)
                case Cancel(task):
                    assert task in self.running
                    self.cancelled.add(task)
                case ShutDownQueues():
                    assert self.stopped_at is None, "once"
                    self.stopped_at = self.now
                case Finish(left=left):
                    assert set(left) == self.running
                    self.finish = action
                case Lead():
                    assert self.held == {"first", "second"}
        if self.stopped_at is None and any(t.kind in ACTING for t in self.running):
            assert self.held == {"first", "second"}, "work runs only under all leases"

    def _check_start(self, task: TaskName) -> None:
        assert task not in self.running
        if task.kind is Kind.RELEASE:
            assert self.stopped_at is not None
            assert not any(t.kind in ACTING for t in self.running), "released under work"
            assert TaskName(Kind.LEASE, task.name) not in self.running
        else:
            assert self.stopped_at is None, f"{task} started after the stop"


@st.composite
def happenings(draw: st.DrawFn, checked: Checked) -> Input:
    kind = draw(st.sampled_from(["end", "end", "end", "win", "win", "time", "stop"]))
    candidates = sorted(checked.running, key=str)
    if kind == "end" and candidates:
        task = draw(st.sampled_from(candidates))
        error = draw(st.sampled_from([None, None, LOST, BROKEN]))
        return TaskEnded(task, error)
    contending = [t.name for t in candidates if t.kind is Kind.LEASE and t.name not in checked.held]
    if kind == "win" and contending:
        return LeaseWon(draw(st.sampled_from(contending)))
    if kind == "stop" and draw(st.booleans()):
        return StopAsked(at_once=draw(st.booleans()))
    due = checked.lifecycle.deadline
    later = checked.now + draw(st.floats(0.0, 30.0))
    checked.now = later if due is None else max(checked.now, min(later, due))
    return TimePassed()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_comes_in_whatever_order(data: st.DataObject) -> None:
    checked = Checked()
    checked.feed(Begin())
    for _ in range(data.draw(st.integers(0, 40))):
        if checked.finish is not None:
            break
        checked.feed(data.draw(happenings(checked)))
    if checked.finish is None:
        checked.feed(StopAsked(at_once=data.draw(st.booleans())))
    assert checked.stopped_at is not None
    obedient = data.draw(st.booleans())
    if obedient:
        checked.obey()
    while checked.finish is None:
        deadline = checked.lifecycle.deadline
        assert deadline is not None, "a stop always has an end in sight"
        checked.now = max(checked.now, deadline)
        checked.feed(TimePassed())
        if obedient:
            checked.obey()
            assert not checked.left, "who obeys is not left behind"
    assert checked.now <= checked.stopped_at + GRACE
