from __future__ import annotations

import pytest

from mcm.api.machine import Machine
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_TRIGGER_DELETION,
)
from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.scale_down_marks import (
    ScaleDownMarks,
    scale_down_marks,
    time_of_change,
)
from mcm.controllers.deployment.sets.wanted import new_set, wanted_sets
from mcm.controllers.deployment.sizes.bounds import Bounds
from tests.unit.deployment.objects import NOW, deployment, owned_set, template
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
    source = deployment(annotations={**listed, **annotations})
    return scale_down_marks(source, MACHINES.get, NOW, changed_at=lambda _: None)


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
    result = scale_down_marks(source, mine.get, NOW, changed_at=lambda _: None)
    assert changes(result) == {"b": mark()}
    assert result.change == listed(f"b~{TIME}")


# The time by which a set deletes whom the autoscaler chose ----------------------------------------

SOON, LATER = "2026-01-01T11:00:01Z", "2026-01-01T11:30:00Z"


@pytest.mark.parametrize(
    ("borne", "time"),
    [
        (None, TIME),
        (EARLIER, TIME),
        (TIME, SOON),  # two changes within one second
        (LATER, "2026-01-01T11:30:01Z"),  # by another clock
    ],
)
def test_no_mark_is_due_before_its_set_has_the_size_that_goes_with_it(
    borne: str | None, time: str
) -> None:
    annotations = {ANNOTATION_REPLICA_CHANGE_BY_SCALER: borne} if borne else {}
    owner = owned_set(annotations=annotations)
    source = deployment(annotations={ANNOTATION_TRIGGER_DELETION: f"b~{TIME}"})
    result = scale_down_marks(source, MACHINES.get, NOW, changed_at=time_of_change([owner]))
    assert changes(result) == {"b": mark(time)}


def test_a_mark_that_nobody_can_read_is_made_anew() -> None:
    garbled = machine("g", annotations={ANNOTATION_MARKED_FOR_DELETION: "soon"})
    source = deployment(annotations={ANNOTATION_TRIGGER_DELETION: f"g~{TIME}"})
    result = scale_down_marks(source, {"g": garbled}.get, NOW, changed_at=lambda _: None)
    assert changes(result) == {"g": mark()}


def chosen(name: str, time: str, owner: str) -> Machine:
    annotations = {ANNOTATION_PRIORITY: "1", ANNOTATION_MARKED_FOR_DELETION: time}
    return machine(name, annotations=annotations, owner=owner)


def times(
    decision: Decision,
    *,
    listed: str,
    stated: str | None = TIME,
    borne: str | None = None,
    mark: str = TIME,
) -> dict[str, str | None]:
    """The times of change that each set is to bear. The old one owns ``a`` and ``z``, the new one
    ``b``; all but ``z`` are marked."""
    said = {ANNOTATION_REPLICA_CHANGE_BY_SCALER: stated} if stated else {}
    source = deployment(
        of=template("class-b"), annotations={ANNOTATION_TRIGGER_DELETION: listed, **said}
    )
    bears = {ANNOTATION_REPLICA_CHANGE_BY_SCALER: borne} if borne else {}
    old = owned_set("old", 2, of=template("class-a"), age=9, annotations=bears)
    new = owned_set("new", 1, of=template("class-b"), annotations=bears)
    machines = {
        "old-uid": [chosen("a", mark, "old-uid"), machine("z", owner="old-uid")],
        "new-uid": [chosen("b", mark, "new-uid")],
    }
    snapshot = DeploymentSnapshot.of(source, [old, new], machines)
    wanted = wanted_sets(snapshot, decision, NOW, marking=False)
    return {
        s.metadata.name: s.metadata.annotations.get(ANNOTATION_REPLICA_CHANGE_BY_SCALER)
        for _, s in wanted
    }


def test_an_old_set_loses_whom_the_autoscaler_chose_too_and_bears_the_time_only_then() -> None:
    assert times(Decision(), listed=f"a~{TIME}") == {"old": TIME, "new": TIME}
    assert times(Decision(), listed=f"b~{TIME}") == {"old": None, "new": TIME}
    assert times(Decision(), listed=f"z~{TIME}") == {"old": None, "new": TIME}  # not marked yet


def test_who_is_listed_goes_though_the_deployment_states_no_time_or_an_earlier_one() -> None:
    for stated in (None, EARLIER, "soon"):
        assert times(Decision(), listed=f"a~{TIME},b~{TIME}", stated=stated) == {
            "old": TIME,
            "new": TIME,
        }


def test_the_time_that_a_set_bears_never_goes_back() -> None:
    assert times(Decision(), listed="", borne=LATER) == {"old": LATER, "new": LATER}


def test_a_set_that_is_not_made_smaller_now_gets_no_time_now() -> None:
    """Else it would replace the machines that were only to go."""
    withheld = Decision(withheld=frozenset({"old-uid", "new-uid"}))
    listed = f"a~{TIME},b~{TIME}"
    assert times(withheld, listed=listed) == {"old": None, "new": None}
    assert times(withheld, listed=listed, borne=EARLIER) == {
        "old": EARLIER,
        "new": EARLIER,
    }


def test_a_set_that_is_made_bears_the_time_from_the_start() -> None:
    source = deployment(annotations={ANNOTATION_REPLICA_CHANGE_BY_SCALER: TIME})
    made = new_set(source, [], replicas=1, bounds=Bounds(3))
    assert made.metadata.annotations[ANNOTATION_REPLICA_CHANGE_BY_SCALER] == TIME
