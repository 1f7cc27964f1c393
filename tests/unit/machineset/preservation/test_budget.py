"""Which Failed machines are kept unasked: the tables of the facts, what people said, and Nodes."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Node, NodeCondition
from mcm.api.machine import LastOperation, Machine, MachinePhase
from mcm.api.meta import ObjectMeta
from mcm.api.names import ANNOTATION_LAST_APPLIED_PRESERVE, ANNOTATION_PRESERVE
from mcm.controllers.machineset.preservation.budget import (
    Budget,
    Subject,
    budget_of,
    is_candidate,
    is_kept,
)
from tests.unit.machineset.objects import NOW, ago, machine

HOUR = timedelta(hours=1)
LATER, BEFORE = NOW + HOUR, ago(5)


def node(value: str | None) -> Node:
    annotations = {} if value is None else {ANNOTATION_PRESERVE: value}
    return Node(metadata=ObjectMeta(name="n", annotations=annotations))


def failed(
    name: str = "m",
    own: str | None = None,
    *,
    followed: str | None = None,
    until: datetime | None = None,
    age: float = 600,
    changed: float = 60,
    deleted: bool = False,
    phase: str = MachinePhase.FAILED,
) -> Machine:
    annotations = {ANNOTATION_PRESERVE: own, ANNOTATION_LAST_APPLIED_PRESERVE: followed}
    return machine(
        name,
        phase,
        annotations={k: v for k, v in annotations.items() if v is not None},
        preserved_until=until,
        age=age,
        changed=ago(changed),
        deleted=deleted,
        operation=LastOperation(state="Failed", last_update_time=ago(changed)),
    )


def budget(maximum: int, *subjects: Subject, **more: tuple[str, ...]) -> Budget:
    return budget_of(maximum, subjects, NOW, preserve_timeout=HOUR, **more)


def alone(*machines: Machine) -> tuple[Subject, ...]:
    return tuple(Subject(m, None) for m in machines)


def names(machines: tuple[Machine, ...]) -> list[str]:
    return [m.metadata.name for m in machines]


@pytest.mark.parametrize(
    ("subject", "kept", "candidate"),
    [
        # What the machine says, if its Node says nothing.
        (Subject(failed(), None), False, True),
        (Subject(failed(), node(None)), False, True),
        (Subject(failed(own="tomorrow"), None), False, True),
        (Subject(failed(own="now"), None), False, False),
        (Subject(failed(own="when-failed"), None), False, False),
        (Subject(failed(own="false"), None), False, False),
        (Subject(failed(own="auto-preserved"), None), True, False),
        # What the Node says, which wins.
        (Subject(failed(), node("false")), False, False),
        (Subject(failed(), node("now")), False, False),
        (Subject(failed(), node("tomorrow")), False, False),
        (Subject(failed(own="auto-preserved"), node("false")), False, False),
        (Subject(failed(own="auto-preserved"), node("now")), False, False),
        (Subject(failed(own="auto-preserved"), node(None)), True, False),
        # Somebody took the Node's word back.
        (Subject(failed(followed="now"), node(None)), False, False),
        (Subject(failed(own="auto-preserved", followed="now"), node(None)), False, False),
        (Subject(failed(followed="now"), None), False, True),
        # The machine controller's stamp.
        (Subject(failed(own="auto-preserved", until=LATER), None), True, False),
        (Subject(failed(own="auto-preserved", until=BEFORE), None), False, False),
        (Subject(failed(until=LATER), None), False, False),
        (Subject(failed(until=BEFORE), None), False, False),
        # Phases, and ends.
        (Subject(failed(phase=MachinePhase.UNKNOWN), None), False, False),
        (Subject(failed(own="auto-preserved", phase=MachinePhase.RUNNING), None), True, False),
        (Subject(failed(deleted=True), None), False, False),
        (Subject(failed(own="auto-preserved", deleted=True), None), False, False),
        # It would be over at once.
        (Subject(failed(changed=3600), None), False, False),
    ],
)
def test_who_is_kept_and_who_could_be(subject: Subject, *, kept: bool, candidate: bool) -> None:
    assert is_kept(subject, NOW) is kept
    assert is_candidate(subject, NOW, preserve_timeout=HOUR) is candidate


@pytest.mark.parametrize(("ended", "again"), [(30, False), (60, False), (61, True)])
def test_what_was_kept_since_it_failed_is_not_kept_again(ended: float, *, again: bool) -> None:
    stopped = NodeCondition(
        type="Preserved",
        status="False",
        reason="Preservation stopped.",
        last_transition_time=ago(ended),
    )
    one = failed(changed=60)
    one = msgspec.structs.replace(
        one, status=msgspec.structs.replace(one.status, conditions=(stopped,))
    )
    assert is_candidate(Subject(one, node(None)), NOW, preserve_timeout=HOUR) is again


def test_the_newest_are_kept_and_the_oldest_released() -> None:
    new, middle, old = failed("a", age=10), failed("b", age=20), failed("c", age=30)
    found = budget(2, *alone(middle, old, new))
    assert (found.room, names(found.candidates), found.release) == (2, ["a", "b", "c"], ())

    kept = [failed(n, "auto-preserved", age=age) for n, age in (("a", 10), ("b", 20), ("c", 30))]
    found = budget(1, *alone(*kept), *alone(failed("d")))
    assert (found.room, names(found.release)) == (0, ["c", "b"])
    assert names(budget(-7, *alone(*kept)).release) == ["c", "b", "a"]
    assert budget(3, *alone(*kept)) == Budget(room=0)


def test_a_machine_that_goes_anyway_is_not_kept() -> None:
    found = budget(1, *alone(failed("a"), failed("b")), leaving=("a",))
    assert names(found.candidates) == ["b"]


def test_whoever_may_be_kept_already_has_the_first_place() -> None:
    found = budget(1, *alone(failed("new", age=1), failed("old", age=99)), unanswered=("old",))
    assert (found.room, names(found.candidates)) == (1, ["old", "new"])


VALUES = st.sampled_from([None, "", "now", "when-failed", "auto-preserved", "false", "tomorrow"])


@st.composite
def subjects(draw: st.DrawFn) -> list[Subject]:
    found = []
    for number in range(draw(st.integers(0, 6))):
        one = failed(
            f"m{number}",
            draw(VALUES),
            followed=draw(VALUES),
            until=draw(st.sampled_from([None, LATER, BEFORE])),
            age=draw(st.integers(0, 3)),
            deleted=draw(st.booleans()),
            phase=draw(st.sampled_from([*MachinePhase, ""])),
        )
        found.append(Subject(one, draw(st.sampled_from([None, *map(node, ("", "now", "false"))]))))
    return found


@given(subjects(), st.integers(-1, 4))
def test_after_what_is_decided_there_is_nothing_left_to_decide(
    found: list[Subject], maximum: int
) -> None:
    first = budget(maximum, *found)
    kept = {s.machine.metadata.name for s in found if is_kept(s, NOW)}
    chosen = set(names(first.candidates[: first.room]))
    released = set(names(first.release))
    assert released <= kept
    assert not chosen & kept
    assert len(kept - released | chosen) <= max(0, maximum)
    assert not (chosen and released)

    def annotated(s: Subject) -> Subject:
        name = s.machine.metadata.name
        own = dict(s.machine.metadata.annotations)
        if name in chosen:
            own[ANNOTATION_PRESERVE] = "auto-preserved"
        if name in released:
            del own[ANNOTATION_PRESERVE]
        meta = msgspec.structs.replace(s.machine.metadata, annotations=own)
        return Subject(msgspec.structs.replace(s.machine, metadata=meta), s.node)

    after = [annotated(s) for s in found]
    assert {s.machine.metadata.name for s in after if is_kept(s, NOW)} == (
        kept - released | chosen
    ), "the machine controller reads it as it was meant"
    second = budget(maximum, *after)
    assert not second.release
    assert not second.candidates[: second.room]
