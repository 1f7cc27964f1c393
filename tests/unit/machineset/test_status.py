from __future__ import annotations

import msgspec
import pytest

from mcm.api.machine import (
    LastOperation,
    MachinePhase,
    MachineSetCondition,
    MachineSetStatus,
)
from mcm.api.names import ANNOTATION_PRESERVE, PRESERVE_AUTO
from mcm.controllers.machineset.status import (
    ReplicaFailure,
    rejected_status,
    status_of,
)
from mcm.controllers.owning.owner import status_change
from tests.unit.machineset.objects import NOW, ago, machine, machine_set

BROKEN = LastOperation(description="no quota", state="Failed", type="Create")
OTHERS = MachineSetCondition(type="SomebodyElses", status="True", reason="x")
QUOTA = ReplicaFailure("FailedCreate", "no quota")


def with_status(status: MachineSetStatus) -> object:
    return msgspec.structs.replace(machine_set(), status=status)


def test_machines_are_counted_by_what_they_are() -> None:
    machines = [
        machine("a"),
        machine("b", MachinePhase.AVAILABLE),
        machine("c", MachinePhase.PENDING, labels={"extra": "label"}),
        machine("d", MachinePhase.FAILED, operation=BROKEN),
        machine("e", MachinePhase.FAILED, operation=BROKEN, preserved_until=ago(5)),
        machine("f", deleted=True),
        machine("g", annotations={ANNOTATION_PRESERVE: PRESERVE_AUTO}, labels={"name": "other"}),
    ]
    status = status_of(machine_set(), machines, None, NOW)
    assert status.replicas == 7
    assert status.fully_labeled_replicas == 6
    assert status.ready_replicas == 2
    assert status.available_replicas == 3
    assert status.preserved_failed_replicas == 1
    assert status.auto_preserve_failed_machine_count == 1
    assert status.observed_generation == 1
    assert status.failed_machines is not None
    (summary,) = status.failed_machines
    assert (summary.name, summary.owner_ref, summary.last_operation) == ("d", "set", BROKEN)
    assert status.last_operation.last_update_time == NOW


def test_failed_machines_are_listed_by_name_and_the_list_vanishes_when_empty() -> None:
    machines = [machine(n, operation=BROKEN) for n in ("c", "a", "b")]
    listed = status_of(machine_set(), machines, None, NOW).failed_machines
    assert listed is not None
    assert [m.name for m in listed] == ["a", "b", "c"]
    assert status_of(machine_set(), [machine()], None, NOW).failed_machines is None


def test_a_status_that_says_nothing_new_is_the_present_one() -> None:
    machines = [machine("a")]
    present = msgspec.structs.replace(
        machine_set(), status=status_of(machine_set(), machines, None, ago(60))
    )
    assert status_of(present, machines, None, NOW) is present.status
    assert status_change(present.status, present.status) == {}


def test_a_new_generation_is_news() -> None:
    present = msgspec.structs.replace(
        machine_set(),
        metadata=msgspec.structs.replace(machine_set().metadata, generation=2),
        status=status_of(machine_set(), [], None, ago(60)),
    )
    wanted = status_of(present, [], None, NOW)
    assert status_change(present.status, wanted) == {
        "status": {
            "observedGeneration": 2,
            "lastOperation": {"lastUpdateTime": "2026-01-01T12:00:00Z"},
        }
    }


def test_counters_that_fall_to_zero_are_said_so() -> None:
    old = MachineSetStatus(replicas=3, ready_replicas=2, available_replicas=2)
    new = MachineSetStatus(replicas=3)
    assert status_change(old, new) == {"status": {"readyReplicas": 0, "availableReplicas": 0}}


def test_a_failure_is_raised_and_taken_back() -> None:
    calm = msgspec.structs.replace(machine_set(), status=MachineSetStatus(conditions=(OTHERS,)))
    raised = status_of(calm, [], QUOTA, ago(60))
    others, failure = raised.conditions
    assert others is OTHERS
    assert (failure.type, failure.status) == ("ReplicaFailure", "True")
    assert (failure.reason, failure.message) == ("FailedCreate", "no quota")
    assert failure.last_transition_time == ago(60)

    failing = msgspec.structs.replace(calm, status=raised)
    assert status_of(failing, [], QUOTA, NOW) is raised
    assert status_of(failing, [], None, NOW).conditions == (OTHERS,)


@pytest.mark.parametrize(
    ("said", "to_say", "news"),
    [
        ("quota: 3 of 3 are used", "quota: 4 of 4 are used", False),
        ('"set-bcdfg" is forbidden: no quota', '"set-xzvtr" is forbidden: no quota', False),
        ('"set-bcdfg" is forbidden: no quota', '"set-bcdfg" is forbidden: by a webhook', True),
    ],
)
def test_the_message_follows_what_is_wrong_and_not_whom_it_hit(
    said: str, to_say: str, *, news: bool
) -> None:
    first = status_of(machine_set(), [], ReplicaFailure("FailedCreate", said), ago(60))
    failing = msgspec.structs.replace(machine_set(), status=first)
    (shown,) = status_of(failing, [], ReplicaFailure("FailedCreate", to_say), NOW).conditions
    assert shown.message == (to_say if news else said)
    assert shown.last_transition_time == ago(60), "it has been failing since then"


@pytest.mark.parametrize("phase", [*MachinePhase, "", "Later"])
def test_what_of_each_phase_is_counted(phase: str) -> None:
    status = status_of(machine_set(), [machine("a", phase, preserved_until=ago(5))], None, NOW)
    assert status.replicas == 1
    assert status.ready_replicas == (phase == "Running")
    assert status.available_replicas == (phase in ("Running", "Available"))
    assert status.preserved_failed_replicas == (phase == "Failed")


def test_machines_count_as_available_after_min_ready_seconds() -> None:
    patient = machine_set()
    spec = msgspec.structs.replace(patient.spec, min_ready_seconds=60)
    patient = msgspec.structs.replace(patient, spec=spec)
    machines = [machine(str(age), changed=ago(age)) for age in (0, 59, 60, 3600)]
    status = status_of(patient, machines, None, NOW)
    assert (status.ready_replicas, status.available_replicas) == (4, 2)


def test_a_kept_machine_alone_is_news() -> None:
    failed = machine("a", MachinePhase.FAILED, operation=BROKEN)
    before = status_of(machine_set(), [failed], None, ago(60))
    present = msgspec.structs.replace(machine_set(), status=before)
    kept = machine("a", MachinePhase.FAILED, operation=BROKEN, preserved_until=NOW)
    after = status_of(present, [kept], None, NOW)
    change = status_change(before, after)["status"]
    assert isinstance(change, dict)
    assert change["preservedFailedReplicas"] == 1
    assert change["failedMachines"] is None, "it is not to be replaced"


def test_a_running_machine_whose_last_operation_failed_is_listed() -> None:
    update = LastOperation(description="no such tag", state="Failed", type="Update")
    status = status_of(machine_set(), [machine("a", operation=update)], None, NOW)
    assert status.available_replicas == 1
    assert [m.name for m in status.failed_machines or ()] == ["a"]


def test_another_reason_replaces_the_first() -> None:
    failing = msgspec.structs.replace(
        machine_set(), status=status_of(machine_set(), [], QUOTA, NOW)
    )
    other = status_of(failing, [], ReplicaFailure("FailedDelete", "forbidden"), NOW)
    assert [(c.reason, c.message) for c in other.conditions] == [("FailedDelete", "forbidden")]


def test_a_rejected_set_says_what_is_left_to_mend_and_keeps_its_counts() -> None:
    present = msgspec.structs.replace(machine_set(), status=MachineSetStatus(replicas=2))
    status = rejected_status(present, "spec.selector: Required value", NOW)
    assert status.replicas == 2
    assert status.observed_generation == 1
    assert status.conditions[0].reason == "InvalidSpec"
    rejected = msgspec.structs.replace(present, status=status)
    assert rejected_status(rejected, "spec.selector: Required value", NOW) is status
    mended = rejected_status(rejected, "spec.replicas: Invalid value -1", NOW)
    assert mended.conditions[0].message == "spec.replicas: Invalid value -1"


@pytest.mark.parametrize("count", [0, 1, 40])
def test_times_are_whole_seconds(count: int) -> None:
    machines = [machine(f"m{n}") for n in range(count)]
    now = NOW.replace(microsecond=123456)
    assert status_of(machine_set(), machines, QUOTA, now).conditions[0].last_transition_time == NOW
