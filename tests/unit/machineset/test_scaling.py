from __future__ import annotations

from datetime import datetime

import pytest

from mcm.api.machine import MachinePhase
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    LABEL_FREEZE,
    LABEL_SCALE_UP_DISABLED,
    LABEL_UPDATE_RESULT,
    UPDATE_RESULT_SUCCESSFUL,
)
from mcm.controllers.machineset.scaling import ScalingPlan, plan
from tests.unit.machineset.objects import NOW, ago, machine, machine_set

LATER = ago(-600)


def deleted(decided: ScalingPlan) -> list[str]:
    return [m.metadata.name for m in decided.delete]


def test_exactly_what_is_missing_is_created() -> None:
    assert plan(machine_set(3), [machine("a")], NOW) == ScalingPlan(create=2)


def test_nothing_is_done_when_nothing_is_missing_or_too_much() -> None:
    assert plan(machine_set(2), [machine("a"), machine("b")], NOW) == ScalingPlan()


def test_machines_on_their_way_out_are_no_replicas() -> None:
    leaving = [
        machine("a", deleted=True),
        machine("b", MachinePhase.TERMINATING),
        machine("c", MachinePhase.RUNNING),
    ]
    assert plan(machine_set(2), leaving, NOW).create == 1


@pytest.mark.parametrize(("replicas", "there", "created"), [(100, 0, 100), (250, 10, 100)])
def test_one_pass_creates_a_hundred_at_most(replicas: int, there: int, created: int) -> None:
    machines = [machine(f"m{n}") for n in range(there)]
    assert plan(machine_set(replicas), machines, NOW).create == created


def test_one_pass_deletes_a_hundred_at_most() -> None:
    machines = [machine(f"m{n}") for n in range(250)]
    assert len(plan(machine_set(0), machines, NOW).delete) == 100


@pytest.mark.parametrize(
    ("replicas", "created", "more"),
    [(100, 100, False), (101, 100, True), (1_000, 100, True), (10_000, 1_000, True)],
)
def test_a_pass_takes_a_tenth_of_a_large_set_and_says_if_that_is_not_all(
    replicas: int, created: int, more: bool
) -> None:
    assert plan(machine_set(replicas), [], NOW) == ScalingPlan(create=created, more=more)


def test_a_large_set_loses_a_tenth_of_its_machines_in_a_pass() -> None:
    machines = [machine(f"m{number:04}") for number in range(2_000)]
    decided = plan(machine_set(0), machines, NOW)
    assert len(decided.delete) == 200
    assert decided.more


def test_the_surplus_goes_in_the_order_of_ranking() -> None:
    machines = [machine("new", age=1), machine("old", age=9), machine("p", MachinePhase.PENDING)]
    assert deleted(plan(machine_set(1), machines, NOW)) == ["p", "old"]


@pytest.mark.parametrize(
    "labels", [{LABEL_FREEZE: "True"}, {LABEL_SCALE_UP_DISABLED: ""}], ids=["frozen", "in place"]
)
def test_some_sets_create_nothing_but_may_shrink(labels: dict[str, str]) -> None:
    blocked = plan(machine_set(3, labels=labels), [machine("a")], NOW)
    assert blocked.create == 0
    assert blocked.withheld
    assert deleted(plan(machine_set(0, labels=labels), [machine("a")], NOW)) == ["a"]


def test_only_the_exact_value_freezes() -> None:
    assert plan(machine_set(1, labels={LABEL_FREEZE: "true"}), [], NOW).create == 1


def test_a_failed_machine_goes_although_none_is_too_many() -> None:
    machines = [machine("a"), machine("b", MachinePhase.FAILED)]
    assert deleted(plan(machine_set(2), machines, NOW)) == ["b"]


@pytest.mark.parametrize(
    "phase", [MachinePhase.UNKNOWN, MachinePhase.PENDING, MachinePhase.CRASH_LOOP_BACK_OFF, ""]
)
def test_an_unhealthy_machine_that_has_not_failed_stays(phase: str) -> None:
    assert plan(machine_set(1), [machine("a", phase)], NOW) == ScalingPlan()


def test_nothing_is_deleted_while_machines_are_missing() -> None:
    decided = plan(machine_set(3), [machine("a"), machine("b", MachinePhase.FAILED)], NOW)
    assert decided == ScalingPlan(create=1)


def test_a_protected_failed_machine_stays_and_counts_until_its_time_is_over() -> None:
    machines = [machine("a"), machine("b", MachinePhase.FAILED)]
    decided = plan(machine_set(2), machines, NOW, protected_until={"b": LATER})
    assert decided == ScalingPlan(again_at=LATER)
    over = plan(machine_set(2), machines, LATER, protected_until={"b": LATER})
    assert deleted(over) == ["b"]


def test_the_earliest_end_of_a_protection_is_when_to_look_again() -> None:
    machines = [machine("a", MachinePhase.FAILED), machine("b", MachinePhase.FAILED)]
    ends: dict[str, datetime] = {"a": ago(-20), "b": ago(-10)}
    assert plan(machine_set(2), machines, NOW, protected_until=ends).again_at == ago(-10)


SCALED_AT = {ANNOTATION_REPLICA_CHANGE_BY_SCALER: "2026-01-01T11:00:00Z"}


@pytest.mark.parametrize(
    ("annotations", "mark", "priority", "goes"),
    [
        (SCALED_AT, "2026-01-01T11:00:00Z", "1", True),
        (SCALED_AT, "2026-01-01T10:59:59Z", "1", True),
        (SCALED_AT, "2026-01-01T11:00:01Z", "1", False),
        (SCALED_AT, "2026-01-01T10:00:00Z", "2", False),
        (SCALED_AT, "someday", "1", False),
        ({}, "2026-01-01T10:00:00Z", "1", False),
        ({ANNOTATION_REPLICA_CHANGE_BY_SCALER: "?"}, "2026-01-01T10:00:00Z", "1", False),
    ],
)
def test_what_the_autoscaler_chose_goes_even_without_surplus(
    annotations: dict[str, str], mark: str, priority: str, goes: bool
) -> None:
    chosen = machine(
        "b", annotations={ANNOTATION_PRIORITY: priority, ANNOTATION_MARKED_FOR_DELETION: mark}
    )
    decided = plan(machine_set(2, annotations=annotations), [machine("a"), chosen], NOW)
    assert deleted(decided) == (["b"] if goes else [])


def test_a_machine_is_deleted_once_however_many_reasons_there_are() -> None:
    mark = {ANNOTATION_PRIORITY: "1", ANNOTATION_MARKED_FOR_DELETION: "2026-01-01T10:00:00Z"}
    failed = machine("b", MachinePhase.FAILED, annotations=mark)
    decided = plan(machine_set(1, annotations=SCALED_AT), [machine("a"), failed], NOW)
    assert deleted(decided) == ["b"]


def test_a_machine_that_moved_in_after_an_update_is_never_surplus() -> None:
    moved = machine("b", labels={LABEL_UPDATE_RESULT: UPDATE_RESULT_SUCCESSFUL})
    assert plan(machine_set(1), [machine("a"), moved], NOW) == ScalingPlan()
    failed = machine("b", "Failed", labels={LABEL_UPDATE_RESULT: UPDATE_RESULT_SUCCESSFUL})
    assert plan(machine_set(2), [machine("a"), failed], NOW) == ScalingPlan()


@pytest.mark.parametrize(
    ("there", "expected", "create", "awaits"),
    [(0, 0, 3, 0), (0, 2, 1, 2), (0, 3, 0, 3), (0, 9, 0, 3), (2, 9, 0, 1), (3, 9, 0, 0)],
)
def test_machines_that_may_be_adopted_soon_are_not_made(
    there: int, expected: int, create: int, awaits: int
) -> None:
    present = [machine(str(n)) for n in range(there)]
    decided = plan(machine_set(3), present, NOW, expected=expected)
    assert (decided.create, decided.awaits, decided.delete) == (create, awaits, ())
