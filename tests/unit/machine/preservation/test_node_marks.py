"""What is set on a Node, and that only what is ours is taken away again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Node, Taint
from mcm.api.machine import MachineStatus
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    EFFECT_NO_SCHEDULE,
    TAINT_PRESERVED,
)
from mcm.api.patches import merged
from mcm.controllers.machine.preservation import node_condition, node_marks
from tests.unit.machine.objects import READY, after, condition, node

NOW = after(hours=1)
BOTH = {ANNOTATION_SCALE_DOWN_DISABLED: "true", ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: "true"}
OURS = Taint(key=TAINT_PRESERVED, effect=EFFECT_NO_SCHEDULE, time_added=NOW)
OTHER = Taint(key="other", effect="NoSchedule", value="x")
LOOKALIKE = Taint(key=TAINT_PRESERVED, effect="NoExecute")
OURS_JSON = {
    "key": TAINT_PRESERVED,
    "effect": EFFECT_NO_SCHEDULE,
    "timeAdded": "2026-01-01T01:00:00Z",
}


def content(patch: JSONObject | None) -> tuple[object, object]:
    """Annotations and taints of a patch, which must be bound to the version seen."""
    if patch is None:
        return None, None
    metadata = section(patch, "metadata")
    assert (metadata["uid"], metadata["resourceVersion"]) == ("uid-n", "9")
    return metadata.get("annotations"), section(patch, "spec").get("taints", "untouched")


def section(patch: JSONObject, name: str) -> JSONObject:
    found = patch.get(name, {})
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("subject", "annotated", "tainted", "expected"),
    [
        (node(), True, None, (BOTH, "untouched")),
        (node(), True, True, (BOTH, [OURS_JSON])),
        (node(), False, True, (None, [OURS_JSON])),
        (node(), False, None, (None, None)),
        (node(annotations=BOTH), True, None, (None, None)),
        # Somebody's own word, whichever, stays as it is and is not made ours.
        (node(annotations={ANNOTATION_SCALE_DOWN_DISABLED: "true"}), True, None, (None, None)),
        (node(annotations={ANNOTATION_SCALE_DOWN_DISABLED: "false"}), True, None, (None, None)),
        (node(taints=(OURS,)), False, True, (None, None)),
        (node(taints=(OURS,)), True, False, (BOTH, None)),
        (node(taints=(LOOKALIKE,)), False, False, (None, None)),
        (
            node(taints=(OTHER, OURS)),
            False,
            False,
            (None, [{"key": "other", "effect": "NoSchedule", "value": "x"}]),
        ),
    ],
)
def test_what_is_missing_is_set_in_one_patch(
    subject: Node, *, annotated: bool, tainted: bool | None, expected: tuple[object, object]
) -> None:
    patch = node_marks.marking_patch(subject, NOW, annotated=annotated, tainted=tainted)
    assert content(patch) == expected


GONE = {ANNOTATION_SCALE_DOWN_DISABLED: None, ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: None}


@pytest.mark.parametrize(
    ("subject", "forget", "expected"),
    [
        (node(), True, (None, None)),
        (node(annotations=BOTH, taints=(OURS,)), False, (GONE, None)),
        (node(annotations={ANNOTATION_SCALE_DOWN_DISABLED: "true"}), True, (None, None)),
        (
            node(annotations={**BOTH, ANNOTATION_SCALE_DOWN_DISABLED: "false"}),
            False,
            ({ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: None}, "untouched"),
        ),
        (node(annotations={ANNOTATION_PRESERVE: "now"}), False, (None, None)),
        (
            node(annotations={ANNOTATION_PRESERVE: "now"}),
            True,
            ({ANNOTATION_PRESERVE: None}, "untouched"),
        ),
    ],
)
def test_only_what_is_ours_is_taken_away(
    subject: Node, *, forget: bool, expected: tuple[object, object]
) -> None:
    assert content(node_marks.unmarking_patch(subject, forget=forget)) == expected


words = st.dictionaries(
    st.sampled_from([ANNOTATION_SCALE_DOWN_DISABLED, "theirs"]), st.sampled_from(["true", "false"])
)
taints = st.lists(st.sampled_from([OTHER, LOOKALIKE]), unique=True).map(tuple)


@given(annotations=words, present=taints, tainted=st.booleans())
def test_what_others_set_is_the_same_before_and_after(
    annotations: dict[str, str], present: tuple[Taint, ...], *, tainted: bool
) -> None:
    before = node(annotations=annotations, taints=present)
    marked = applied(before, node_marks.marking_patch(before, NOW, annotated=True, tainted=tainted))
    assert (TAINT_PRESERVED, EFFECT_NO_SCHEDULE) in {
        (t.key, t.effect) for t in marked.spec.taints
    } or not tainted
    again = node_marks.marking_patch(marked, NOW, annotated=True, tainted=tainted)
    assert again is None
    after_all = applied(marked, node_marks.unmarking_patch(marked, forget=True))
    assert after_all.metadata.annotations == annotations
    assert after_all.spec == before.spec


def applied(subject: Node, patch: JSONObject | None) -> Node:
    whole = msgspec.to_builtins(subject)
    return msgspec.convert(merged(whole, patch or {}), Node)


UNTIL = after(hours=97)


def test_the_wording_is_that_of_the_go_original() -> None:
    until = "Machine preserved until 2026-01-05T01:00:00Z."
    said = node_condition.preserved("now", UNTIL)
    assert (said.status, said.reason, said.message) == ("True", "Preserved by user.", until)
    said = node_condition.preserved("auto-preserved", UNTIL, drain=node_condition.DRAINED)
    assert (said.status, said.reason) == ("True", "Preserved by MCM.")
    assert said.message == f"Preserved node drained successfully. {until}"
    said = node_condition.preserved("when-failed", UNTIL, drain=node_condition.NOT_DRAINED)
    assert (said.status, said.reason) == ("False", "Preserved by user.")
    assert said.message == f"Preserved node could not be drained. {until}"
    assert node_condition.STOPPED.status == "False"
    assert node_condition.STOPPED.reason == "Preservation stopped."


def test_the_condition_is_written_once_and_moves_only_with_its_status() -> None:
    said = node_condition.preserved("now", UNTIL)
    held = condition("Preserved", said.status, reason=said.reason, message=said.message)
    assert node_condition.condition_patch(node(conditions=(READY, held)), said, NOW) is None
    other = condition("Preserved", "True", reason=said.reason, message="earlier")
    patch = node_condition.condition_patch(node(conditions=(other,)), said, NOW)
    assert patch is not None
    (written,) = patch["status"]["conditions"]  # type: ignore[index]
    assert written["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    patch = node_condition.condition_patch(node(conditions=(other,)), node_condition.STOPPED, NOW)
    assert patch is not None
    (written,) = patch["status"]["conditions"]  # type: ignore[index]
    assert written["lastTransitionTime"] == "2026-01-01T01:00:00Z"
    assert written["message"] == ""


def test_a_drain_is_remembered_only_while_the_machine_is_kept() -> None:
    drained = node_condition.preserved("now", UNTIL, drain=node_condition.DRAINED)
    held = condition("Preserved", "True", reason=drained.reason, message=drained.message)
    assert node_condition.says_drained(node(conditions=(held,)))
    over = condition("Preserved", "False", reason="Preservation stopped.", message=drained.message)
    assert not node_condition.says_drained(node(conditions=(over,)))
    assert not node_condition.says_preserved(node(conditions=(over,)))


def test_the_copy_on_the_machine_follows_once_there_is_one() -> None:
    held = condition("Preserved", "True", reason="Preserved by user.")
    subject = node(conditions=(READY, held))
    assert node_condition.mirrored(MachineStatus(), subject).conditions == ()
    copied = node_condition.mirrored(MachineStatus(conditions=(READY,)), subject)
    assert copied.conditions == (READY, held)
    assert node_condition.mirrored(copied, subject) is copied


def test_the_time_of_our_taint_is_when_the_drain_began() -> None:
    assert node_marks.tainted_since(node(taints=(OTHER, OURS))) == NOW
    assert node_marks.tainted_since(node(taints=(LOOKALIKE,))) is None
