"""The queue's state machine against a naive model (W1-W4, W6, W7, W9, W10), and its tables."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcm.workqueue.delayed import DelayedKeys
from mcm.workqueue.ready import ReadyOrder
from mcm.workqueue.state import AGEING, INITIAL_PRIORITY, QueueState

KEYS = st.sampled_from("abcdef")
PRIORITIES = st.sampled_from([INITIAL_PRIORITY, -1, 0, 0, 1, 50])
DELAYS = st.floats(-1, 100, allow_nan=False)


@dataclass
class Waiting:
    priority: int
    since: float = 0.0
    arrival: int = 0


class Model:
    """The queue as one would write it without a thought for speed."""

    def __init__(self) -> None:
        self.dirty: dict[str, Waiting] = {}
        self.processing: set[str] = set()
        self.delayed: dict[str, tuple[float, int]] = {}
        self.shut = False
        self.arrivals = 0

    def ready(self) -> list[str]:
        return [key for key in self.dirty if key not in self.processing]

    def add(self, key: str, priority: int, now: float) -> None:
        if self.shut:
            return
        if key in self.dirty:
            self.dirty[key].priority = max(self.dirty[key].priority, priority)
            return
        self.dirty[key] = Waiting(priority)
        if key not in self.processing:
            self._arrive(key, now)

    def add_at(self, key: str, deadline: float, priority: int, now: float) -> None:
        if self.shut:
            return
        if deadline <= now:
            self.add(key, priority, now)
            return
        known = self.delayed.get(key, (deadline, priority))
        self.delayed[key] = (min(known[0], deadline), max(known[1], priority))

    def advance(self, now: float) -> None:
        due = [(when, key) for key, (when, _) in self.delayed.items() if when <= now]
        for _, key in sorted(due):
            self.add(key, self.delayed.pop(key)[1], now)

    def first(self) -> str | None:
        def rank(key: str) -> tuple[float, int]:
            waiting = self.dirty[key]
            return AGEING * waiting.since - waiting.priority, waiting.arrival

        return min(self.ready(), key=rank, default=None)

    def take(self, key: str) -> None:
        del self.dirty[key]
        self.processing.add(key)

    def done(self, key: str, now: float) -> None:
        self.processing.discard(key)
        if key in self.dirty:
            self._arrive(key, now)

    def _arrive(self, key: str, now: float) -> None:
        self.arrivals += 1
        self.dirty[key].since = now
        self.dirty[key].arrival = self.arrivals


class QueueMachine(RuleBasedStateMachine):
    """Applies the same steps to both; time moves in random steps and to exact deadlines."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = QueueState[str]()
        self.model = Model()
        self.now = 0.0

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: int) -> None:
        self.queue.add(key, priority=priority, now=self.now)
        self.model.add(key, priority, self.now)

    @rule(key=KEYS, delay=DELAYS, priority=PRIORITIES)
    def add_later(self, key: str, delay: float, priority: int) -> None:
        deadline = self.now + delay
        self.queue.add_at(key, deadline, priority=priority, now=self.now)
        self.model.add_at(key, deadline, priority, self.now)

    @rule(step=st.floats(0, 120, allow_nan=False))
    def wait(self, step: float) -> None:
        self.now += step
        self._release()

    @precondition(lambda self: self.queue.next_deadline is not None)
    @rule()
    def wait_for_the_next_deadline(self) -> None:
        assert self.queue.next_deadline is not None
        self.now = max(self.now, self.queue.next_deadline)
        self._release()

    def _release(self) -> None:
        before = self.queue.ready
        released = self.queue.release_due(self.now)
        self.model.advance(self.now)
        assert self.queue.ready == before + released

    @rule()
    def take(self) -> None:
        expected = self.model.first()
        taken = self.queue.take(self.now)
        assert (taken.key if taken else None) == expected
        if taken is not None:
            assert taken.key not in self.model.processing, "W1: handed out twice"
            self.model.take(taken.key)

    @rule(key=KEYS)
    def done(self, key: str) -> None:
        foreign = key not in self.model.processing
        before = self.queue.ready
        ended = self.queue.done(key, self.now)
        if foreign:
            assert ended is None
            assert self.queue.ready == before, "W6: a foreign done changed something"
            return
        assert ended is not None
        assert ended[1] == (1 if key in self.model.dirty else 0), "W3"
        self.model.done(key, self.now)

    @rule(odds=st.integers(0, 9))
    def shut_down(self, odds: int) -> None:
        if odds:
            return  # rarely, or little else would be seen
        expected = len(self.model.delayed)
        assert self.queue.shut_down() == expected
        self.model.shut = True
        self.model.delayed.clear()

    @invariant()
    def same_state(self) -> None:
        self.queue.check_invariants()
        assert self.queue.ready == len(self.model.ready())
        assert set(self.queue.processing) == self.model.processing
        assert self.queue.delayed == len(self.model.delayed)
        assert self.queue.idle == (not self.model.dirty and not self.model.processing)
        deadlines = [when for when, _ in self.model.delayed.values()]
        assert self.queue.next_deadline == min(deadlines, default=None)


TestQueueMachine = QueueMachine.TestCase


def take_all(queue: QueueState[str], now: float) -> list[str]:
    keys = []
    while (taken := queue.take(now)) is not None:
        keys.append(taken.key)
    return keys


def test_keys_of_one_priority_come_first_in_first_out() -> None:
    queue = QueueState[str]()
    for key in "cab":
        queue.add(key, priority=0, now=0.0)
    assert take_all(queue, 0.0) == ["c", "a", "b"]


def test_a_fresh_change_overtakes_the_initial_list() -> None:
    queue = QueueState[str]()
    for key in "abc":
        queue.add(key, priority=INITIAL_PRIORITY, now=0.0)
    queue.add("fresh", priority=0, now=50.0)
    assert take_all(queue, 50.0) == ["fresh", "a", "b", "c"]


def test_the_initial_list_is_overtaken_for_a_hundred_seconds_only() -> None:
    queue = QueueState[str]()
    queue.add("old", priority=INITIAL_PRIORITY, now=0.0)
    queue.add("just before", priority=0, now=99.9)
    queue.add("just after", priority=0, now=100.1)
    assert take_all(queue, 100.1) == ["just before", "old", "just after"]


def test_adding_again_with_a_higher_priority_lifts_a_waiting_key() -> None:
    queue = QueueState[str]()
    queue.add("a", priority=INITIAL_PRIORITY, now=0.0)
    queue.add("b", priority=0, now=1.0)
    queue.add("a", priority=0, now=2.0)
    assert take_all(queue, 2.0) == ["a", "b"], "its waiting time still counts"


def test_adding_again_with_a_lower_priority_changes_nothing() -> None:
    queue = QueueState[str]()
    queue.add("a", priority=5, now=0.0)
    queue.add("b", priority=1, now=0.0)
    queue.add("a", priority=-5, now=0.0)
    assert take_all(queue, 0.0) == ["a", "b"]


def test_a_key_changed_while_in_processing_runs_once_more_behind_the_others() -> None:
    queue = QueueState[str]()
    queue.add("a", priority=0, now=0.0)
    assert take_all(queue, 0.0) == ["a"]
    for _ in range(3):
        queue.add("a", priority=0, now=1.0)
    queue.add("b", priority=0, now=2.0)
    assert take_all(queue, 2.0) == ["b"], "a is still in processing"
    queue.done("a", 3.0)
    assert take_all(queue, 3.0) == ["a"]
    queue.done("a", 4.0)
    assert take_all(queue, 4.0) == []


def test_a_second_done_does_not_hand_a_dirty_key_to_two_workers() -> None:
    queue = QueueState[str]()
    queue.add("a", priority=0, now=0.0)
    queue.take(0.0)
    queue.add("a", priority=0, now=0.0)
    queue.done("a", 0.0)
    assert queue.done("a", 0.0) is None
    assert take_all(queue, 0.0) == ["a"]


def test_the_waiting_time_counts_from_the_first_add() -> None:
    queue = QueueState[str]()
    queue.add("a", priority=0, now=1.0)
    queue.add("a", priority=9, now=3.0)
    taken = queue.take(5.0)
    assert taken is not None
    assert taken.waited == 4.0


def test_the_priority_of_a_key_in_processing_is_known() -> None:
    queue = QueueState[str]()
    queue.add("a", priority=-7, now=0.0)
    queue.take(2.0)
    assert queue.processing["a"].priority == -7
    assert queue.processing["a"].since == 2.0


def test_a_delayed_key_keeps_the_earliest_deadline_and_the_highest_priority() -> None:
    queue = QueueState[str]()
    queue.add_at("a", 10.0, priority=3, now=0.0)
    queue.add_at("a", 5.0, priority=0, now=0.0)
    queue.add_at("a", 20.0, priority=7, now=0.0)
    assert queue.release_due(4.999) == 0
    assert queue.release_due(5.0) == 1
    taken = queue.take(5.0)
    assert taken is not None and queue.processing["a"].priority == 7
    assert queue.release_due(100.0) == 0, "W7: once only"


def test_a_key_moved_forward_many_times_does_not_grow_the_heap_without_bound() -> None:
    delayed = DelayedKeys[str]()
    for step in range(10_000):
        delayed.push("a", deadline=10_000.0 - step, priority=0)
    assert len(delayed._heap) < 200
    assert delayed.pop_due(1.0) == ("a", 0)
    assert delayed.pop_due(1e9) is None


def test_nothing_added_before_a_shutdown_is_lost() -> None:
    queue = QueueState[str]()
    queue.add("working", priority=0, now=0.0)
    queue.take(0.0)
    queue.add("working", priority=0, now=0.0)
    queue.add("ready", priority=0, now=0.0)
    queue.add_at("later", 1.0, priority=0, now=0.0)
    assert queue.shut_down() == 1
    queue.add("refused", priority=0, now=0.0)
    queue.add_at("refused", 1.0, priority=0, now=0.0)
    assert take_all(queue, 0.0) == ["ready"]
    queue.done("working", 0.0)
    assert take_all(queue, 0.0) == ["working"], "dirty since before the shutdown"
    assert not queue.idle
    queue.done("ready", 0.0)
    queue.done("working", 0.0)
    assert queue.idle


@given(st.lists(st.tuples(PRIORITIES, st.floats(0, 10)), min_size=1, max_size=40))
def test_no_key_is_overtaken_by_one_that_came_later_than_the_bound(
    arrivals: list[tuple[int, float]],
) -> None:
    """W10: with ageing r, nobody with priority q passes p if it came (q - p) / r later."""
    order = ReadyOrder[int](ageing=2.0)
    now, came = 0.0, list[tuple[int, float]]()
    for number, (priority, gap) in enumerate(arrivals):
        now += gap
        order.push(number, priority=priority, now=now)
        came.append((priority, now))
    served = [key for _ in arrivals if (key := order.pop()) is not None]
    assert sorted(served) == list(range(len(arrivals)))
    for position, first in enumerate(served):
        for later in served[position + 1 :]:
            (p, t), (q, s) = came[later], came[first]
            assert s <= t + (q - p) / 2.0 + 1e-9, f"{first} overtook {later}"


def test_a_key_lifted_many_times_does_not_grow_the_heap_without_bound() -> None:
    order = ReadyOrder[str](ageing=1.0)
    order.push("a", priority=0, now=0.0)
    for priority in range(1, 10_000):
        order.raise_priority("a", priority)
    assert len(order._heap) < 200
    assert order.pop() == "a"
    assert order.pop() is None


def test_ready_keys_can_be_listed_and_looked_up() -> None:
    order = ReadyOrder[str](ageing=1.0)
    order.push("a", priority=0, now=0.0)
    assert ("a" in order, "b" in order, list(order), len(order)) == (True, False, ["a"], 1)


def test_an_order_without_ageing_is_refused() -> None:
    with pytest.raises(ValueError):
        ReadyOrder[str](ageing=0)
