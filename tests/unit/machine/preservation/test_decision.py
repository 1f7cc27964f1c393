"""Every row of the table of values, phases and ends; and what holds for all of them."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Node
from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_PRESERVE,
    ANNOTATION_PRESERVE,
    PRESERVE_VALUES,
)
from mcm.controllers.machine.preservation.decision import (
    Verdict,
    annotations_to_write,
    decide,
)
from tests.unit.machine.objects import after, condition, machine, node

NOW = after(hours=10)
FUTURE, PAST = NOW + timedelta(seconds=1), NOW
RUNNING, FAILED = MachinePhase.RUNNING, MachinePhase.FAILED
MARKED = condition("Preserved", "True", reason="Preserved by user.")


def subject(
    on_machine: str | None = None,
    *,
    last: str | None = None,
    phase: str = RUNNING,
    until: datetime | None = None,
) -> Machine:
    annotations = {ANNOTATION_PRESERVE: on_machine, ANNOTATION_LAST_APPLIED_PRESERVE: last}
    return machine(
        phase=phase,
        node="n",
        preserved=until,
        annotations={k: v for k, v in annotations.items() if v is not None},
    )


def saying(value: str | None = None, *, marked: bool = False) -> Node:
    return node(
        annotations={} if value is None else {ANNOTATION_PRESERVE: value},
        conditions=(MARKED,) if marked else (),
    )


@pytest.mark.parametrize(
    ("request_", "phase", "until", "verdict"),
    [
        (None, RUNNING, None, Verdict.NONE),
        (None, RUNNING, FUTURE, Verdict.END),
        (None, FAILED, FUTURE, Verdict.END),
        ("false", RUNNING, None, Verdict.NONE),
        ("false", FAILED, None, Verdict.NONE),
        ("false", FAILED, FUTURE, Verdict.END),
        ("false", FAILED, PAST, Verdict.END),
        ("now", RUNNING, None, Verdict.KEEP),
        ("now", "", None, Verdict.KEEP),
        ("now", FAILED, None, Verdict.KEEP),
        ("now", RUNNING, FUTURE, Verdict.KEEP),
        ("now", RUNNING, PAST, Verdict.END_AND_FORGET),
        ("now", FAILED, PAST, Verdict.END_AND_FORGET),
        ("when-failed", RUNNING, None, Verdict.NONE),
        ("when-failed", MachinePhase.UNKNOWN, None, Verdict.NONE),
        ("when-failed", RUNNING, FUTURE, Verdict.END),
        ("when-failed", RUNNING, PAST, Verdict.END_AND_FORGET),
        ("when-failed", FAILED, None, Verdict.KEEP),
        ("when-failed", FAILED, FUTURE, Verdict.KEEP),
        ("when-failed", FAILED, PAST, Verdict.END_AND_FORGET),
        ("auto-preserved", FAILED, None, Verdict.KEEP),
        ("auto-preserved", FAILED, FUTURE, Verdict.KEEP),
        ("auto-preserved", FAILED, PAST, Verdict.END_AND_FORGET),
        ("auto-preserved", RUNNING, FUTURE, Verdict.END_AND_FORGET),
        ("auto-preserved", RUNNING, None, Verdict.END_AND_FORGET),
        ("tomorrow", FAILED, None, Verdict.NONE),
        ("tomorrow", FAILED, FUTURE, Verdict.END),
        ("", FAILED, FUTURE, Verdict.END),
    ],
)
@pytest.mark.parametrize("has_node", [True, False])
def test_the_value_on_the_machine_the_phase_and_the_end_decide(
    request_: str | None,
    phase: str,
    until: datetime | None,
    verdict: Verdict,
    *,
    has_node: bool,
) -> None:
    asked = subject(request_, phase=phase, until=until)
    assert decide(asked, saying() if has_node else None, NOW).verdict is verdict
    if request_ in PRESERVE_VALUES:
        followed = subject(last=request_, phase=phase, until=until)
        assert decide(followed, saying(request_), NOW).verdict is verdict


@pytest.mark.parametrize(
    ("on_machine", "last", "on_node", "counts"),
    [
        ("now", None, None, "now"),
        ("now", "", None, "now"),
        ("now", None, "false", "false"),
        ("false", None, "now", "now"),
        ("when-failed", "now", "now", "now"),
        ("now", "when-failed", None, ""),  # taken off the Node: that ends it
        (None, "now", None, ""),
        (None, None, "when-failed", "when-failed"),
        (None, "now", "when-failed", "when-failed"),
        ("no such", None, "now", "now"),
    ],
)
def test_the_word_of_the_node_wins_and_so_does_its_being_taken_back(
    on_machine: str | None, last: str | None, on_node: str | None, counts: str
) -> None:
    assert decide(subject(on_machine, last=last), saying(on_node), NOW).request == counts


def test_without_a_node_the_word_of_the_machine_counts() -> None:
    assert decide(subject("now", last="false"), None, NOW).request == "now"
    assert decide(subject(last="now"), None, NOW).request == ""


@pytest.mark.parametrize("value", ["", "tomorrow", "Now", "x" * 5000])
@pytest.mark.parametrize(
    ("until", "verdict"),
    [(None, Verdict.NONE), (FUTURE, Verdict.LEAVE), (PAST, Verdict.END)],
)
def test_what_cannot_be_read_on_a_node_changes_nothing_but_does_not_keep_for_ever(
    value: str, until: datetime | None, verdict: Verdict
) -> None:
    asked = subject("now", phase=FAILED, until=until)
    decision = decide(asked, saying(value), NOW)
    assert decision.verdict is verdict
    assert "node n is none of auto-preserved, false, now, when-failed" in decision.complaint
    assert len(decision.complaint) < 300
    assert not annotations_to_write(asked, saying(value), decision)


def test_what_cannot_be_read_on_a_machine_is_complained_of() -> None:
    complaint = decide(subject("tomorrow"), saying(), NOW).complaint
    assert "'tomorrow' on the machine is none of auto-preserved, false, now" in complaint
    assert not decide(subject(""), saying(), NOW).complaint
    # Where the Node's word counts, the machine's is about to be taken off, whatever it is.
    assert not decide(subject("tomorrow"), saying("now"), NOW).complaint
    assert not decide(subject("tomorrow", last="now"), saying(), NOW).complaint


def test_a_node_that_still_says_preserved_is_cleaned_up_though_the_machine_forgot() -> None:
    """The Go original loses the end of a preservation in some of its status writes."""
    assert decide(subject(), saying(marked=True), NOW).verdict is Verdict.END
    assert decide(subject("false"), saying(marked=True), NOW).verdict is Verdict.END
    assert decide(subject("now"), saying(marked=True), NOW).verdict is Verdict.KEEP


@pytest.mark.parametrize(
    ("until", "verdict"),
    [(None, Verdict.NONE), (FUTURE, Verdict.LEAVE), (PAST, Verdict.END)],
)
def test_the_word_of_a_node_that_may_be_another_machines_counts_for_nothing(
    until: datetime | None, verdict: Verdict
) -> None:
    for value in ("now", "false"):
        asked = subject("now", until=until)
        assert decide(asked, saying(value), NOW, ambiguous=True).verdict is verdict


@pytest.mark.parametrize(
    ("on_machine", "last", "on_node", "written"),
    [
        (None, None, None, {}),
        ("when-failed", None, None, {}),
        ("when-failed", "", None, {}),
        (None, None, "now", {ANNOTATION_LAST_APPLIED_PRESERVE: "now"}),
        (None, "now", "now", {}),
        (
            "when-failed",
            None,
            "now",
            {ANNOTATION_PRESERVE: None, ANNOTATION_LAST_APPLIED_PRESERVE: "now"},
        ),
        ("when-failed", "now", "now", {ANNOTATION_PRESERVE: None}),
        (None, "now", "false", {ANNOTATION_LAST_APPLIED_PRESERVE: "false"}),
        (None, "now", None, {ANNOTATION_LAST_APPLIED_PRESERVE: None}),
        (
            "now",
            "now",
            None,
            {ANNOTATION_PRESERVE: None, ANNOTATION_LAST_APPLIED_PRESERVE: None},
        ),
    ],
)
def test_the_machine_remembers_what_its_node_said(
    on_machine: str | None, last: str | None, on_node: str | None, written: dict[str, str | None]
) -> None:
    asked, where = subject(on_machine, last=last), saying(on_node)
    assert annotations_to_write(asked, where, decide(asked, where, NOW)) == written


def test_when_the_time_is_over_the_request_goes_from_the_machine() -> None:
    asked = subject("now", last="now", until=PAST)
    where = saying("now")
    assert annotations_to_write(asked, where, decide(asked, where, NOW)) == {
        ANNOTATION_PRESERVE: None,
        ANNOTATION_LAST_APPLIED_PRESERVE: None,
    }


values = st.none() | st.sampled_from([*sorted(PRESERVE_VALUES), "", "tomorrow"])
phases = st.sampled_from(["", *MachinePhase])
ends = st.none() | st.integers(-5, 5).map(lambda s: NOW + timedelta(seconds=s))
nodes = st.none() | st.builds(lambda v, m: saying(v, marked=m), values, st.booleans())


@given(values, values, phases, ends, nodes, st.booleans())
def test_nothing_is_kept_beyond_its_end(
    on_machine: str | None,
    last: str | None,
    phase: str,
    until: datetime | None,
    where: Node | None,
    ambiguous: bool,
) -> None:
    asked = subject(on_machine, last=last, phase=phase, until=until)
    verdict = decide(asked, where, NOW, ambiguous=ambiguous).verdict
    if until is not None and until <= NOW:
        assert verdict in (Verdict.END, Verdict.END_AND_FORGET)
    if verdict is Verdict.LEAVE:
        assert until is not None
    if until is not None:
        assert verdict is not Verdict.NONE


@given(values, values, phases, ends, nodes)
def test_what_is_remembered_is_written_once(
    on_machine: str | None,
    last: str | None,
    phase: str,
    until: datetime | None,
    where: Node | None,
) -> None:
    asked = subject(on_machine, last=last, phase=phase, until=until)
    decision = decide(asked, where, NOW)
    change = annotations_to_write(asked, where, decision)
    merged = {**asked.metadata.annotations, **change}
    kept = {k: v for k, v in merged.items() if v is not None}
    metadata = msgspec.structs.replace(asked.metadata, annotations=kept)
    again = msgspec.structs.replace(asked, metadata=metadata)
    assert not annotations_to_write(again, where, decision)
    later = decide(again, where, NOW)
    if decision.verdict is Verdict.KEEP:
        assert later.verdict is Verdict.KEEP
        assert later.request == decision.request
