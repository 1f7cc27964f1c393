from __future__ import annotations

import pytest

from mcm.api.machine import Machine
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_TRIGGER_DELETION,
)
from mcm.controllers.deployment.scaling import ScaleDownMarks, scale_down_marks
from tests.unit.deployment.objects import NOW, deployment
from tests.unit.machineset.objects import machine

TIME = "2026-01-01T11:00:00Z"
EARLIER = "2026-01-01T10:00:00Z"
MACHINES = {
    "a": machine("a", annotations={ANNOTATION_PRIORITY: "3"}),
    "b": machine("b"),
    "marked": machine(
        "marked",
        annotations={ANNOTATION_PRIORITY: "1", ANNOTATION_MARKED_FOR_DELETION: EARLIER},
    ),
    "failed": machine("failed", "Failed"),
    "leaving": machine("leaving", deleted=True),
}


def marks(text: str | None, **annotations: str) -> ScaleDownMarks:
    listed = {} if text is None else {ANNOTATION_TRIGGER_DELETION: text}
    return scale_down_marks(deployment(annotations={**listed, **annotations}), MACHINES.get, NOW)


def changes(result: ScaleDownMarks) -> dict[str, object]:
    return {m.metadata.name: change for m, change in result.machines}


def mark(time: str = TIME) -> object:
    wanted = {ANNOTATION_PRIORITY: "1", ANNOTATION_MARKED_FOR_DELETION: time}
    return {"metadata": {"annotations": wanted}}


def listed(text: str | None) -> object:
    return {"metadata": {"annotations": {ANNOTATION_TRIGGER_DELETION: text}}}


def test_without_a_list_nothing_is_done() -> None:
    assert marks(None) == ScaleDownMarks()


def test_every_machine_of_the_list_is_marked_and_the_list_stays_until_they_are_gone() -> None:
    result = marks(f"a~{TIME},b~{EARLIER}")
    assert changes(result) == {"a": mark(), "b": mark(EARLIER)}
    assert result.change is None


def test_a_machine_that_is_marked_is_left_alone() -> None:
    assert marks(f"marked~{TIME}") == ScaleDownMarks()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"gone~{TIME}", None),
        (f"failed~{TIME},leaving~{TIME}", None),
        (f"marked~{TIME},gone~{TIME}", f"marked~{TIME}"),
        (f"marked~{TIME}~{TIME}", None),
        ("marked~soon", None),
        (f"~{TIME},,", None),
        ("", None),
    ],
)
def test_entries_that_did_their_work_or_never_can_are_taken_out(
    text: str, kept: str | None
) -> None:
    result = marks(text)
    assert result.machines == ()
    assert result.change == listed(kept)


@pytest.mark.parametrize(
    ("last_change", "time"), [(EARLIER, EARLIER), (None, "2026-01-01T12:00:00Z")]
)
def test_an_entry_without_a_time_gets_that_of_the_last_change(
    last_change: str | None, time: str
) -> None:
    known = {ANNOTATION_REPLICA_CHANGE_BY_SCALER: last_change} if last_change else {}
    result = marks("b", **known)
    assert changes(result) == {"b": mark(time)}
    assert result.change == listed(f"b~{time}")


def test_a_machine_of_somebody_else_is_not_touched() -> None:
    mine: dict[str, Machine] = {"b": MACHINES["b"]}
    source = deployment(annotations={ANNOTATION_TRIGGER_DELETION: f"a~{TIME},b~{TIME}"})
    result = scale_down_marks(source, mine.get, NOW)
    assert changes(result) == {"b": mark()}
    assert result.change == listed(f"b~{TIME}")
