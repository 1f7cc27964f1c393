from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from mcm.api.core import NodeCondition
from mcm.drain.mode import Force, go_bool, mode_of
from tests.unit.drain.pods import NOW, condition

HOUR = timedelta(hours=1)
FIVE = timedelta(minutes=5)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("conditions", "force"),
    [
        ([], Force.NONE),
        ([condition("Ready", "True", NOW - HOUR)], Force.NONE),
        ([condition("Ready", "False", NOW - FIVE)], Force.NONE),
        ([condition("Ready", "False", NOW - FIVE - SECOND)], Force.NODE_NOT_READY),
        ([condition("Ready", "Unknown", NOW - HOUR)], Force.NODE_NOT_READY),
        ([condition("Ready", "False", None)], Force.NONE),
        ([condition("ReadonlyFilesystem", "False", NOW - HOUR)], Force.NONE),
        ([condition("ReadonlyFilesystem", "True", NOW - HOUR)], Force.READONLY_FILESYSTEM),
        ([condition("ReadonlyFilesystem", "Unknown", NOW - HOUR)], Force.READONLY_FILESYSTEM),
        ([condition("DiskPressure", "True", NOW - HOUR)], Force.NONE),
    ],
)
def test_a_node_that_is_ill_for_more_than_five_minutes_is_drained_by_force(
    conditions: list[NodeCondition], force: Force
) -> None:
    mode = mode_of(conditions, force_asked=False, deadline=NOW + HOUR, now=NOW)
    assert mode.force is force


@pytest.mark.parametrize(
    ("status", "since", "dead"),
    [
        ("True", NOW - HOUR, False),
        ("False", NOW - HOUR, False),
        ("Unknown", NOW - FIVE, False),
        ("Unknown", NOW - FIVE - SECOND, True),
        ("Unknown", None, False),
    ],
)
def test_only_a_kubelet_not_heard_of_for_five_minutes_is_dead(
    status: str, since: datetime | None, *, dead: bool
) -> None:
    ill = [condition("Ready", status, since)]
    assert mode_of(ill, force_asked=True, deadline=NOW, now=NOW).kubelet_dead is dead


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("1", "t", "T", "TRUE", "true", "True")),
        *((text, False) for text in ("0", "f", "F", "FALSE", "false", "False", "", "yes", "tRUE")),
    ],
)
def test_the_force_label_is_read_as_go_reads_booleans(text: str, *, expected: bool) -> None:
    assert go_bool(text) is expected
    mode = mode_of([], force_asked=go_bool(text), deadline=NOW + HOUR, now=NOW)
    assert mode.forced is expected


def test_the_deadline_itself_still_belongs_to_eviction() -> None:
    at = mode_of([], force_asked=False, deadline=NOW, now=NOW)
    after = mode_of([], force_asked=False, deadline=NOW, now=NOW + SECOND)
    assert at.force is Force.NONE
    assert after.force is Force.TIMEOUT


def test_the_next_change_is_the_earliest_of_deadline_and_illness() -> None:
    ill = [condition("Ready", "False", NOW - SECOND)]
    mode = mode_of(ill, force_asked=False, deadline=NOW + HOUR, now=NOW)
    assert mode.next_change == NOW - SECOND + FIVE
    assert mode_of([], force_asked=False, deadline=NOW + HOUR, now=NOW).next_change == NOW + HOUR


def test_a_forced_mode_changes_no_more() -> None:
    assert mode_of([], force_asked=True, deadline=NOW + HOUR, now=NOW).next_change is None
