"""The bodies of both event APIs, and that no text is ever too long for them (E4)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import ObjectMeta
from mcm.events.wire import (
    EventType,
    Regarding,
    Tally,
    core_count_patch,
    core_event_body,
    cut,
    event_body,
    event_name,
    occurrence,
    regarding,
    reporter,
    series_patch,
)

FIRST = datetime(2026, 11, 21, 4, 51, 33, 120, tzinfo=UTC)
LAST = datetime(2026, 11, 21, 5, 0, 0, 999_999, tzinfo=UTC)
ONCE = Tally(1, FIRST, FIRST)
OFTEN = Tally(7, FIRST, LAST)
BY = reporter("machine-controller-manager", "host-1")

MACHINE = Machine(metadata=ObjectMeta(name="m1", namespace="shoot", uid="u1", resource_version="9"))
WHAT = occurrence(
    regarding(MACHINES, MACHINE), "Warning", "FailedCreate", "quota exceeded", "Create"
)


def test_an_event_of_the_newer_api_sets_nothing_that_it_refuses() -> None:
    assert event_body(WHAT, ONCE, "m1.5", BY) == {
        "metadata": {"name": "m1.5", "namespace": "shoot"},
        "eventTime": "2026-11-21T04:51:33.000120Z",
        "type": "Warning",
        "reason": "FailedCreate",
        "action": "Create",
        "note": "quota exceeded",
        "regarding": {
            "apiVersion": "machine.sapcloud.io/v1alpha1",
            "kind": "Machine",
            "namespace": "shoot",
            "name": "m1",
            "uid": "u1",
        },
        "reportingController": "machine-controller-manager",
        "reportingInstance": "machine-controller-manager-host-1",
    }


def test_repeats_are_a_series_in_the_newer_api() -> None:
    series = {"series": {"count": 7, "lastObservedTime": "2026-11-21T05:00:00.999999Z"}}
    assert series_patch(OFTEN) == series
    assert event_body(WHAT, OFTEN, "m1.5", BY) == {**event_body(WHAT, ONCE, "m1.5", BY), **series}


def test_an_event_of_the_older_api_has_counts_and_time_stamps() -> None:
    body = core_event_body(WHAT, OFTEN, "m1.5", BY)
    assert body == {
        "metadata": {"name": "m1.5", "namespace": "shoot"},
        "firstTimestamp": "2026-11-21T04:51:33Z",
        "lastTimestamp": "2026-11-21T05:00:00Z",
        "count": 7,
        "type": "Warning",
        "reason": "FailedCreate",
        "message": "quota exceeded",
        "involvedObject": event_body(WHAT, ONCE, "", BY)["regarding"],
        "source": {"component": "machine-controller-manager"},
    }
    assert core_count_patch(OFTEN) == {"count": 7, "lastTimestamp": "2026-11-21T05:00:00Z"}


def test_events_of_cluster_scoped_objects_live_in_the_default_namespace() -> None:
    about = regarding(NODES, Node(metadata=ObjectMeta(name="n1", uid="u")))
    what = occurrence(about, EventType.NORMAL, "R", "note", "A")
    assert event_body(what, ONCE, "n1.5", BY)["metadata"] == {
        "name": "n1.5",
        "namespace": "default",
    }
    assert about.as_reference() == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}


def test_a_new_version_of_the_object_is_still_the_same_series() -> None:
    newer = Machine(
        metadata=ObjectMeta(name="m1", namespace="shoot", uid="u1", resource_version="10")
    )
    assert regarding(MACHINES, newer) == regarding(MACHINES, MACHINE)


@given(st.text(max_size=3000), st.text(max_size=300), st.text(max_size=300))
def test_every_text_fits_the_limits_of_the_api(note: str, reason: str, action: str) -> None:
    what = occurrence(regarding(MACHINES, MACHINE), "Normal", reason, note, action)
    assert len(what.note.encode()) <= 1024
    assert 1 <= len(what.reason.encode()) <= 128
    assert 1 <= len(what.action.encode()) <= 128


@given(st.text(), st.integers(3, 40))
def test_a_cut_text_is_a_beginning_of_the_whole(text: str, limit: int) -> None:
    short = cut(text, limit)
    whole = text.encode("utf-8", "replace").decode()
    assert short == whole or (short.endswith("…") and whole.startswith(short[:-1]))


def test_only_two_types_of_event_exist() -> None:
    with pytest.raises(ValueError):
        occurrence(WHAT.regarding, "Error", "R", "n", "A")  # type: ignore[arg-type]


def test_an_event_is_named_for_its_object_and_stays_a_valid_name() -> None:
    assert event_name(WHAT.regarding, 0x1A2B) == "m1.1a2b"
    long = Regarding("v1", "Node", "", "a" * 240 + "-." + "b" * 11, "u")
    name = event_name(long, 0x649F00AA00)
    assert len(name) <= 253
    assert name == "a" * 240 + ".649f00aa00"


def test_a_long_host_name_is_cut() -> None:
    assert len(reporter("c", "h" * 300).instance.encode()) <= 128
