"""What is written when: tables, and E1 and E2 for any history."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mcm.events.correlator import Correlator, Drop
from mcm.events.wire import EventType, Occurrence, Regarding

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def about(name: str) -> Regarding:
    return Regarding("machine.sapcloud.io/v1alpha1", "Machine", "ns", name, f"uid-{name}")


def what(
    name: str = "m", note: str = "note", reason: str = "R", kind: EventType = EventType.NORMAL
) -> Occurrence:
    return Occurrence(about(name), kind, reason, "Reconcile", note)


class Desk:
    """A correlator whose outbox is written at once, unless told otherwise."""

    def __init__(self, **limits: int) -> None:
        self.correlator = Correlator(**limits)
        self.now = 0.0
        # Counts on the server, by event name; every write in order.
        self.server: dict[str, int] = {}
        self.writes: list[tuple[float, str, str, int]] = []

    def happen(self, occurrence: Occurrence, times: int = 1, *, every: float = 0.0) -> None:
        for _ in range(times):
            self.now += every
            self.correlator.record(occurrence, now=self.now, wall=self.wall)
            self.send()

    @property
    def wall(self) -> datetime:
        return EPOCH + timedelta(seconds=self.now)

    def send(self, limit: int = 10**6) -> None:
        while limit and (series := self.correlator.head()) is not None:
            limit -= 1
            self.server[series.name] = series.count
            self.writes.append((self.now, series.what.regarding.name, series.name, series.count))
            self.correlator.saved(series, series.count, self.now)

    def wait(self, seconds: float) -> None:
        """Pass the time with a sweep a minute."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 60)
            self.correlator.sweep(self.now)
            self.send()

    @property
    def counts(self) -> list[int]:
        return [count for *_, count in self.writes]


def test_what_happens_once_is_written_once() -> None:
    desk = Desk()
    desk.happen(what())
    desk.wait(7200)
    assert desk.counts == [1]
    assert not desk.correlator.needs_sweep, "forgotten"


def test_repeats_are_written_when_their_count_has_doubled_and_at_the_end() -> None:
    desk = Desk()
    desk.happen(what(), 20, every=1.0)
    assert desk.counts == [1, 2, 4, 8, 16]
    desk.wait(600)
    assert desk.counts == [1, 2, 4, 8, 16, 20]
    assert list(desk.server.values()) == [20], "one event, one count"


def test_a_long_series_is_refreshed_before_the_event_expires() -> None:
    desk = Desk()
    for _ in range(6 * 60):
        desk.happen(what())
        desk.wait(60)
    stamps = [when for when, *_ in desk.writes]
    assert max(later - sooner for sooner, later in itertools.pairwise(stamps)) <= 1860
    assert len(stamps) < 25


def test_after_its_end_a_series_begins_anew() -> None:
    desk = Desk()
    desk.happen(what(), 2)
    desk.wait(361)
    desk.happen(what(), 2)
    assert len(desk.server) == 2
    assert list(desk.server.values()) == [2, 2]


def test_an_ended_series_begins_anew_even_before_the_sweep_has_seen_it() -> None:
    desk = Desk()
    desk.happen(what())
    desk.happen(what(), every=400.0)
    assert list(desk.server.values()) == [1, 1]


def test_different_kinds_reasons_and_objects_are_different_series() -> None:
    desk = Desk()
    desk.happen(what())
    desk.happen(what(reason="Other"))
    desk.happen(what(kind=EventType.WARNING))
    desk.happen(what("m2"))
    assert len(desk.server) == 4


def test_different_notes_are_told_one_by_one_and_from_the_eleventh_on_together() -> None:
    desk = Desk()
    names = []
    for n in range(30):
        desk.happen(what(note=f"created machine-{n}"), every=1.0)
        names = [name for _, _, name, _ in desk.writes]
    assert len(set(names)) == 11
    assert sorted(desk.server.values()) == [1] * 10 + [16], "20 in all, written at 16"
    desk.happen(what(note="created machine-3"))
    assert desk.server[names[3]] == 2, "a known note still counts for itself"
    desk.wait(601)
    desk.happen(what(note="created machine-77"))
    assert len(desk.server) == 12, "after a pause, notes are told again"


def test_the_combined_event_says_that_it_is_one() -> None:
    correlator = Correlator()
    for n in range(11):
        correlator.record(what(note=f"n{n}" + "x" * 1020), now=0.0, wall=EPOCH)
    notes = []
    while (series := correlator.head()) is not None:
        notes.append(series.what.note)
        correlator.saved(series, 1, 0.0)
    assert notes[9].startswith("n9")
    assert notes[10].startswith("(combined from similar events): n10")
    assert len(notes[10].encode()) <= 1024


def test_an_object_gets_25_writes_at_once_and_then_one_in_five_minutes() -> None:
    desk = Desk()
    for n in range(40):
        desk.happen(what(reason=f"R{n}"))
    assert len(desk.writes) == 25
    assert desk.correlator.dropped == {Drop.SPAM: 15}
    desk.happen(what("innocent"))
    assert len(desk.writes) == 26
    for n in range(12):
        desk.happen(what(reason=f"S{n}"), every=150.0)
    assert len(desk.writes) == 26 + 6


def test_a_known_series_without_token_counts_on_and_is_written_later() -> None:
    desk = Desk()
    desk.happen(what(reason="first"))
    for n in range(24):
        desk.happen(what(reason=f"R{n}"))
    desk.happen(what(reason="first"), 9)
    assert desk.counts[0] == 1 and len(desk.writes) == 25
    desk.wait(600)
    assert desk.counts[-1] == 10
    assert not desk.correlator.dropped


def test_a_full_outbox_drops_and_counts() -> None:
    correlator = Correlator(outbox=3)
    for n in range(5):
        correlator.record(what(f"m{n}"), now=0.0, wall=EPOCH)
    assert correlator.dropped == {Drop.FULL: 2}
    correlator.record(what("m0"), now=0.0, wall=EPOCH)
    series = correlator.head()
    assert series is not None and series.count == 2, "queued ones still count on"


def test_forgotten_counts_are_counted() -> None:
    desk = Desk(capacity=2)
    desk.happen(what("a"), 3)
    desk.happen(what("b"))
    desk.happen(what("c"))
    assert desk.correlator.dropped == {Drop.EVICTED: 1}
    desk.happen(what("a"))
    assert [name for _, name, *_ in desk.writes] == ["a", "a", "b", "c", "a"]


def test_a_series_forgotten_while_it_is_written_loses_nothing_silently() -> None:
    correlator = Correlator(capacity=1)
    correlator.record(what("a"), now=0.0, wall=EPOCH)
    series = correlator.head()
    assert series is not None
    correlator.record(what("a"), now=0.0, wall=EPOCH)
    correlator.record(what("b"), now=0.0, wall=EPOCH)
    correlator.saved(series, 1, 0.0)
    assert correlator.dropped == {Drop.EVICTED: 1}


def test_a_lost_series_begins_anew() -> None:
    desk = Desk()
    desk.correlator.record(what(), now=0.0, wall=EPOCH)
    series = desk.correlator.head()
    assert series is not None
    desk.correlator.lost(series, Drop.REJECTED)
    assert desk.correlator.head() is None
    desk.happen(what())
    assert desk.correlator.dropped == {Drop.REJECTED: 1}
    assert desk.counts == [1]


def test_an_expired_event_is_told_anew_with_what_it_did_not_say() -> None:
    desk = Desk()
    desk.happen(what(), 2)
    desk.now = 100.0
    desk.correlator.record(what(), now=100.0, wall=desk.wall)
    desk.correlator.record(what(), now=100.0, wall=desk.wall)
    series = desk.correlator.head()
    assert series is not None and (series.count, series.saved) == (4, 2)
    old = series.name
    desk.correlator.expired(series, desk.now, desk.wall)
    assert desk.correlator.head() is series
    assert (series.count, series.saved, series.first) == (2, 0, desk.wall)
    assert series.name != old
    desk.send()
    assert desk.server[series.name] == 2


def test_an_expired_event_without_token_is_dropped() -> None:
    desk = Desk()
    desk.happen(what(reason="x"))
    for n in range(23):
        desk.happen(what(reason=f"R{n}"))
    desk.correlator.record(what(reason="x"), now=0.0, wall=EPOCH)
    series = desk.correlator.head()
    assert series is not None
    desk.correlator.expired(series, 0.0, EPOCH)
    assert desk.correlator.head() is None
    assert desk.correlator.dropped == {Drop.SPAM: 1}


def test_names_are_never_the_same_twice_even_at_one_instant() -> None:
    correlator = Correlator()
    for n in range(20):
        correlator.record(what(reason=f"R{n}"), now=0.0, wall=EPOCH)
    names = set()
    while (series := correlator.head()) is not None:
        names.add(series.name)
        correlator.saved(series, 1, 0.0)
    assert len(names) == 20


class Histories(RuleBasedStateMachine):
    """Any history with a small memory: nothing is lost uncounted, and no object costs too much."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(capacity=4, outbox=3)
        self.expired_counts = 0

    @rule(
        name=st.sampled_from("abcdef"),
        reason=st.sampled_from(["R", "S"]),
        note=st.integers(0, 14),
        times=st.integers(1, 30),
    )
    def happen(self, name: str, reason: str, note: int, times: int) -> None:
        for _ in range(times):
            occurrence = what(name, f"note {note}", reason)
            self.desk.correlator.record(occurrence, now=self.desk.now, wall=self.desk.wall)

    @rule(limit=st.integers(1, 5))
    def send(self, limit: int) -> None:
        self.desk.send(limit)

    @rule()
    def refuse(self) -> None:
        if (series := self.desk.correlator.head()) is not None:
            self.desk.correlator.lost(series, Drop.REJECTED)

    @rule()
    def expire(self) -> None:
        series = self.desk.correlator.head()
        if series is not None and series.saved:
            self.desk.correlator.expired(series, self.desk.now, self.desk.wall)

    @rule(seconds=st.floats(0, 1000))
    def wait(self, seconds: float) -> None:
        self.desk.now += seconds
        self.desk.correlator.sweep(self.desk.now)

    @rule()
    def finish(self) -> None:
        self.desk.correlator.finish(self.desk.now)

    @invariant()
    def nothing_is_lost_uncounted(self) -> None:
        """E2."""
        correlator = self.desk.correlator
        dropped = correlator.dropped.total()
        assert correlator.recorded == correlator.saved_total + dropped + correlator.unsaved()
        assert sum(self.desk.server.values()) == correlator.saved_total

    def teardown(self) -> None:
        correlator = self.desk.correlator
        correlator.close()
        assert correlator.unsaved() == 0
        assert correlator.recorded == correlator.saved_total + correlator.dropped.total()


Histories.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestHistories = Histories.TestCase


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 120), st.integers(0, 5), st.integers(0, 20)), max_size=300))
def test_no_object_ever_costs_more_than_its_budget(history: list[tuple[float, int, int]]) -> None:
    """E1: in any hour at most 25 writes and 12 more."""
    desk = Desk()
    for gap, reason, note in history:
        desk.wait(gap)
        desk.happen(what(reason=f"R{reason}", note=f"n{note}"))
    hours = Counter(int(when // 3600) for when, *_ in desk.writes)
    assert all(count <= 25 + 13 for count in hours.values())
    stamps = [when for when, *_ in desk.writes]
    for first, start in enumerate(stamps):
        inside = sum(1 for when in stamps[first:] if when < start + 3600)
        assert inside <= 25 + 12
