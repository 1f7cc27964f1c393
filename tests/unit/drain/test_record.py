"""The record of a drain: what is written is read again, and what others wrote harms nobody."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.drain.record import LONGEST_TEXT, Record, read_record, record_text

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

moments = st.integers(0, 10**6).map(lambda s: NOW + timedelta(seconds=s))
records = st.builds(
    Record,
    start=st.none() | moments,
    deadline=st.none() | moments,
    mode=st.text(max_size=20),
    held_since=st.dictionaries(st.text(min_size=1, max_size=40), moments, max_size=20),
)


@given(record=records)
def test_what_is_written_is_read_again(record: Record) -> None:
    found = read_record(record_text(record))
    assert found.record == record
    assert found.trouble == ""


@pytest.mark.parametrize("text", [None, ""])
def test_nothing_written_is_an_empty_record(text: str | None) -> None:
    found = read_record(text)
    assert found.record == Record()
    assert not found.record.is_worth_keeping
    assert found.trouble == ""


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        ("[" * 20000, "no JSON"),
        ("null", "no JSON object"),
        ('{"start": 5}', "at start"),
        ('{"deadline": "soon"}', "at deadline"),
        ('{"mode": {}}', "at mode"),
        ('{"heldSince": []}', "at heldSince"),
        ('{"heldSince": {"": "2026-01-01T12:00:00Z"}}', "at heldSince."),
        ('{"heldSince": {"u": "never"}}', "at heldSince.u"),
        ('{"heldSince": {"%s": "2026-01-01T12:00:00Z"}}' % ("u" * 200), "at heldSince.uu"),
        (json.dumps({"mode": "x" * LONGEST_TEXT}), "too long"),
    ],
)
def test_what_cannot_be_read_is_said_and_left_out(text: str, trouble: str) -> None:
    found = read_record(text)
    assert found.record == Record()
    assert trouble in found.trouble


def test_one_part_that_cannot_be_read_costs_no_other() -> None:
    found = read_record(
        '{"start": 5, "heldSince": {"a": "2026-01-01T12:00:00Z", "b": 1}, "new": [1]}'
    )
    assert found.record == Record(held_since={"a": NOW})
    assert "start" in found.trouble
    assert "heldSince.b" in found.trouble
    assert "new" not in found.trouble


@given(text=st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    read_record(text)


def test_a_text_stays_within_its_bounds_and_keeps_who_waits_longest() -> None:
    held = {f"uid-{i:036}": NOW + timedelta(seconds=i) for i in range(5000)}
    text = record_text(Record(held_since=held))
    assert len(text.encode()) <= LONGEST_TEXT
    kept = read_record(text).record.held_since
    assert len(kept) > 100
    assert set(kept) == set(list(held)[: len(kept)])


def test_only_what_cannot_be_found_out_again_is_news() -> None:
    held = Record(start=NOW, held_since={"a": NOW})
    assert not held.says_more_than(Record(held_since={"a": NOW}, mode="force"))
    assert held.says_more_than(Record())
    assert not Record().says_more_than(held), "what is over goes with the next that is written"
    assert held.is_worth_keeping
