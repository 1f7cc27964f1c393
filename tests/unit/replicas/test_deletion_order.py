from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRESERVE,
    ANNOTATION_PRIORITY,
    PRESERVE_AUTO,
    PRESERVE_NOW,
)
from mcm.controllers.replicas.deletion_order import deletion_order, priority_of, rank_of
from tests.unit.machineset.objects import NOW, ago, machine

LATER = ago(-600)
MUCH_LATER = ago(-6000)


def names(machines: list[Machine]) -> list[str]:
    return [m.metadata.name for m in machines]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            machine("b"),
            machine("a", MachinePhase.FAILED, preserved_until=LATER),
            id="a preserved machine outlives one that serves",
        ),
        pytest.param(
            machine("b", MachinePhase.FAILED, preserved_until=ago(1)),
            machine("a"),
            id="a preservation that is over protects no more",
        ),
        pytest.param(
            machine("b", annotations={ANNOTATION_PRESERVE: PRESERVE_AUTO}, preserved_until=LATER),
            machine("a", annotations={ANNOTATION_PRESERVE: PRESERVE_NOW}, preserved_until=LATER),
            id="what a user preserved outlives what was preserved automatically",
        ),
        pytest.param(
            machine("b", preserved_until=LATER),
            machine("a", preserved_until=MUCH_LATER),
            id="of preserved machines the one whose time ends first goes first",
        ),
        pytest.param(
            machine("b", annotations={ANNOTATION_PRIORITY: "1"}),
            machine("a", MachinePhase.FAILED),
            id="priority counts more than phase",
        ),
        pytest.param(
            machine("b", annotations={ANNOTATION_PRIORITY: "2"}),
            machine("a", annotations={ANNOTATION_PRIORITY: "none"}),
            id="a priority that is no number counts as 3",
        ),
        pytest.param(
            machine("b", annotations={ANNOTATION_MARKED_FOR_DELETION: "2026-01-01T10:00:00Z"}),
            machine("a", annotations={ANNOTATION_MARKED_FOR_DELETION: "yesterday"}),
            id="marked before unmarked, and an unreadable mark is none",
        ),
        pytest.param(
            machine("b", annotations={ANNOTATION_MARKED_FOR_DELETION: "2026-01-01T10:00:00Z"}),
            machine("a", annotations={ANNOTATION_MARKED_FOR_DELETION: "2026-01-01T10:00:01Z"}),
            id="marked earlier goes earlier",
        ),
        pytest.param(
            machine("b", age=60), machine("a", age=10), id="of equals the older one goes first"
        ),
        pytest.param(machine("a"), machine("b"), id="at last the name decides"),
    ],
)
def test_who_goes_first(first: Machine, second: Machine) -> None:
    assert names(deletion_order([second, first], NOW)) == names([first, second])
    assert names(deletion_order([first, second], NOW)) == names([first, second])


def test_phases_go_from_the_least_to_the_most_useful() -> None:
    order = [
        MachinePhase.TERMINATING,
        MachinePhase.FAILED,
        MachinePhase.CRASH_LOOP_BACK_OFF,
        MachinePhase.UNKNOWN,
        MachinePhase.PENDING,
        MachinePhase.AVAILABLE,
        MachinePhase.RUNNING,
    ]
    machines = [machine(phase, phase) for phase in order]
    assert names(deletion_order(reversed(machines), NOW)) == order


@pytest.mark.parametrize("phase", ["", "SomethingNew"])
def test_a_machine_without_a_known_phase_is_no_better_or_worse_than_a_pending_one(
    phase: str,
) -> None:
    assert rank_of(machine(phase=phase), NOW) == rank_of(machine(phase="Pending"), NOW)


@pytest.mark.parametrize(
    "phase",
    [
        MachinePhase.IN_PLACE_UPDATING,
        MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL,
        MachinePhase.IN_PLACE_UPDATE_FAILED,
    ],
)
def test_a_machine_that_is_updated_in_place_ranks_as_available(phase: str) -> None:
    assert rank_of(machine(phase=phase), NOW) == rank_of(machine(phase="Available"), NOW)


def test_a_machine_that_is_being_deleted_ranks_as_terminating_whatever_its_phase() -> None:
    leaving = machine("z", MachinePhase.RUNNING, deleted=True)
    assert deletion_order([machine("a", MachinePhase.FAILED), leaving], NOW)[0] is leaving


@pytest.mark.parametrize(
    ("text", "priority"),
    [("1", 1), ("-5", -5), ("+4", 4), ("", 3), (" 1", 3), ("1_0", 3), ("1.5", 3), ("٣", 3)],
)
def test_priorities_are_read_as_go_reads_integers(text: str, priority: int) -> None:
    assert priority_of(machine(annotations={ANNOTATION_PRIORITY: text})) == priority


moments = st.one_of(st.none(), st.integers(-3, 3).map(ago))


@st.composite
def machines(draw: st.DrawFn) -> list[Machine]:
    count = draw(st.integers(0, 8))
    return [draw(one_machine(f"m{n}")) for n in range(count)]


@st.composite
def one_machine(draw: st.DrawFn, name: str) -> Machine:
    annotations = {
        ANNOTATION_PRIORITY: draw(st.sampled_from(["", "1", "2", "3", "x"])),
        ANNOTATION_PRESERVE: draw(st.sampled_from(["", PRESERVE_AUTO, PRESERVE_NOW])),
    }
    marked: datetime | None = draw(moments)
    if marked is not None:
        annotations[ANNOTATION_MARKED_FOR_DELETION] = marked.isoformat()
    return machine(
        name,
        draw(st.sampled_from(["", "Whatever", *MachinePhase])),
        annotations=annotations,
        age=draw(st.integers(0, 2)),
        deleted=draw(st.booleans()),
        preserved_until=draw(moments),
    )


@given(machines(), st.randoms())
def test_the_order_is_total_and_does_not_depend_on_where_it_started(
    some: list[Machine], chance: Random
) -> None:
    shuffled = list(some)
    chance.shuffle(shuffled)
    ordered = deletion_order(shuffled, NOW)
    assert ordered == deletion_order(some, NOW)
    ranks = [rank_of(m, NOW) for m in ordered]
    assert all(earlier < later for earlier, later in pairwise(ranks))
