from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest

from mcm.api.machine import (
    MachineDeploymentCondition,
    MachineDeploymentStatus,
    MachineSet,
    MachineSetCondition,
    MachineSetStatus,
    MachineSummary,
)
from mcm.api.names import LABEL_FREEZE
from mcm.controllers.conditions import find
from mcm.controllers.deployment.conditions import Conditions, with_condition
from mcm.controllers.deployment.decision import NO_NODES, Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.status.pause import with_paused
from mcm.controllers.deployment.status.progress import (
    evaluated,
    is_complete,
    look_again_at,
    with_new_set,
    with_pause,
)
from mcm.controllers.deployment.status.status import counted_status, status_after, with_set_failure
from mcm.controllers.overshooting.limits import Limits
from mcm.controllers.owning.owner import status_change
from tests.unit.deployment.objects import (
    NOW,
    ago,
    deployment,
    owned_set,
    progressing,
    template,
)

ROLLING = Decision(rolling=True)


def counts(replicas: int, updated: int, available: int, **more: object) -> MachineDeploymentStatus:
    status = MachineDeploymentStatus(
        observed_generation=1,
        replicas=replicas,
        updated_replicas=updated,
        ready_replicas=available,
        available_replicas=available,
    )
    return msgspec.structs.replace(status, **more)


def judge(
    old: MachineDeploymentStatus,
    new: MachineDeploymentStatus,
    *present: MachineDeploymentCondition,
    deadline: int | None = None,
    now: datetime = NOW,
) -> MachineDeploymentCondition | None:
    source = deployment(
        3,
        progress_deadline_seconds=deadline,
        status=msgspec.structs.replace(old, conditions=present),
    )
    judged = evaluated(source, msgspec.structs.replace(new, conditions=present), owned_set(), now)
    return find(judged.conditions, "Progressing")


# Counting -----------------------------------------------------------------------------------------


def serving(name: str, count: int, *, spec: int | None = None, **status: object) -> MachineSet:
    base = MachineSetStatus(replicas=count, ready_replicas=count, available_replicas=count)
    return owned_set(
        name,
        count if spec is None else spec,
        of=template("class-b" if name == "old" else "class-a"),
        status=msgspec.structs.replace(base, **status),
    )


def test_the_sets_are_summed_up() -> None:
    broken = MachineSummary(name="m")
    new = serving("new", 2, spec=3, failed_machines=(broken,))
    old = serving("old", 1, preserved_failed_replicas=1)
    status = counted_status(deployment(3), [old, new], new, Bounds(3, unavailable=1), NOW)
    assert (status.replicas, status.updated_replicas) == (3, 2)
    assert (status.ready_replicas, status.available_replicas) == (3, 3)
    assert (status.unavailable_replicas, status.preserved_failed_replicas) == (1, 1)
    assert status.failed_machines == (broken,)
    assert status.observed_generation == 1


@pytest.mark.parametrize(
    ("available", "preserved", "status"), [(2, 0, "True"), (1, 0, "False"), (1, 1, "True")]
)
def test_availability_is_judged_without_the_machines_that_are_preserved(
    available: int, preserved: int, status: str
) -> None:
    new = serving("new", available, preserved_failed_replicas=preserved)
    counted = counted_status(deployment(3), [new], new, Bounds(3, unavailable=1), NOW)
    condition = find(counted.conditions, "Available")
    assert condition is not None
    assert condition.status == status


FAILURE = MachineSetCondition(
    type="ReplicaFailure",
    status="True",
    reason="FailedCreate",
    message="no quota",
    last_transition_time=ago(30),
)


def test_a_set_that_cannot_make_machines_shows_on_the_deployment_until_it_can() -> None:
    new, old = serving("new", 1), serving("old", 1, conditions=(FAILURE,))
    counted = counted_status(deployment(2), [old, new], new, Bounds(2), NOW)
    condition = find(counted.conditions, "ReplicaFailure")
    assert condition is not None
    assert (condition.reason, condition.message) == ("FailedCreate", "no quota")
    assert condition.last_update_time == ago(30)
    failing = deployment(2, status=counted)
    assert counted_status(failing, [old, new], new, Bounds(2), NOW).conditions == counted.conditions
    calm = serving("old", 1)
    healed = counted_status(failing, [calm, new], new, Bounds(2), NOW)
    assert find(healed.conditions, "ReplicaFailure") is None


def test_an_unchanged_status_is_not_written() -> None:
    new = serving("new", 3)
    status = status_after(
        DeploymentSnapshot.of(deployment(3), [new], {new.metadata.uid: ()}),
        ROLLING,
        NOW,
        created=False,
    )
    again = deployment(3, status=status)
    later = ago(-3600)
    repeated = status_after(
        DeploymentSnapshot.of(again, [new], {new.metadata.uid: ()}), ROLLING, later, created=False
    )
    assert repeated == status
    assert status_change(status, repeated) == {}


# Progress -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (counts(4, 1, 3), counts(4, 2, 3)),
        (counts(4, 2, 3), counts(3, 2, 3)),
        (counts(4, 2, 2), counts(4, 2, 3)),
    ],
    ids=["more are new", "fewer are old", "more serve"],
)
def test_an_update_that_gets_on_says_so_each_time(
    old: MachineDeploymentStatus, new: MachineDeploymentStatus
) -> None:
    condition = judge(old, new, progressing("MachineSetUpdated"))
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "MachineSetUpdated")
    assert condition.message == 'MachineSet "set" is progressing.'
    assert condition.last_update_time == NOW
    assert condition.last_transition_time == ago(600)


def test_a_complete_update_says_so_once() -> None:
    condition = judge(counts(4, 3, 3), counts(3, 3, 3), progressing("MachineSetUpdated"))
    assert condition is not None
    assert condition.reason == "NewMachineSetAvailable"
    assert condition.message == 'MachineSet "set" has successfully progressed.'
    again = judge(counts(3, 3, 2), counts(3, 3, 3), condition, now=ago(-60))
    assert again == condition


@pytest.mark.parametrize(
    ("updated", "deadline", "late"),
    [(60, 61, False), (60, 60, False), (60, 59, True), (60, None, False)],
)
def test_an_update_that_does_not_get_on_is_late_after_its_deadline(
    updated: float, deadline: int | None, late: bool
) -> None:
    said = progressing("MachineSetUpdated", updated=updated)
    condition = judge(counts(4, 1, 3), counts(4, 1, 3), said, deadline=deadline)
    assert condition is not None
    if late:
        assert (condition.status, condition.reason) == ("False", "ProgressDeadlineExceeded")
        assert condition.message == 'MachineSet "set" has timed out progressing.'
        assert condition.last_transition_time == NOW
    else:
        assert condition == said


def test_a_late_update_that_gets_on_again_is_not_late_any_more() -> None:
    late = progressing("ProgressDeadlineExceeded", status="False")
    condition = judge(counts(4, 1, 3), counts(4, 2, 3), late, deadline=10)
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "MachineSetUpdated")
    assert condition.last_transition_time == NOW


@pytest.mark.parametrize(
    ("reason", "deadline", "at"),
    [
        ("MachineSetUpdated", 100, ago(60 - 101)),
        ("NewMachineSetCreated", 100, ago(60 - 101)),
        ("MachineSetUpdated", None, None),
        ("NewMachineSetAvailable", 100, None),
        ("ProgressDeadlineExceeded", 100, None),
    ],
)
def test_the_deadline_is_looked_at_a_second_after_it(
    reason: str, deadline: int | None, at: datetime | None
) -> None:
    status = counts(4, 1, 3, conditions=(progressing(reason),))
    source = deployment(3, progress_deadline_seconds=deadline)
    assert look_again_at(source, status) == at


@pytest.mark.parametrize(
    ("status", "complete"),
    [
        (counts(3, 3, 3), True),
        (counts(4, 3, 3), False),
        (counts(3, 2, 3), False),
        (counts(3, 3, 2), False),
        (counts(3, 3, 3, observed_generation=0), False),
    ],
)
def test_complete_is_all_new_all_there_all_serving_and_all_seen(
    status: MachineDeploymentStatus, complete: bool
) -> None:
    assert is_complete(status, deployment(3)) is complete


def test_a_new_set_is_announced_when_made_and_when_nothing_was_said() -> None:
    made = with_new_set(
        (progressing("NewMachineSetAvailable"),), owned_set(), created=True, now=NOW
    )
    assert [(c.reason, c.message) for c in made] == [
        ("NewMachineSetCreated", 'Created new machine set "set"')
    ]
    found = with_new_set((), owned_set(), created=False, now=NOW)
    assert [(c.reason, c.message) for c in found] == [
        ("FoundNewMachineSet", 'Found new machine set "set"')
    ]
    assert with_new_set(found, owned_set(), created=False, now=NOW) == found
    assert with_new_set((), None, created=False, now=NOW) == ()


# Pauses and refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paused", "before", "after"),
    [
        (True, "MachineSetUpdated", "DeploymentPaused"),
        (False, "DeploymentPaused", "DeploymentResumed"),
    ],
)
def test_pause_and_resumption_are_told(paused: bool, before: str, after: str) -> None:
    (condition,) = with_pause((progressing(before),), paused=paused, now=NOW)
    assert (condition.status, condition.reason) == ("Unknown", after)
    assert condition.last_update_time == NOW


@pytest.mark.parametrize(
    ("paused", "reason"),
    [
        (True, "DeploymentPaused"),
        (False, "DeploymentResumed"),
        (False, "MachineSetUpdated"),
        (True, "ProgressDeadlineExceeded"),
    ],
)
def test_what_was_told_already_or_matters_more_stays(paused: bool, reason: str) -> None:
    said = (progressing(reason),)
    assert with_pause(said, paused=paused, now=NOW) is said


def test_a_pause_without_anything_said_before_is_told_too() -> None:
    assert [c.reason for c in with_pause((), paused=True, now=NOW)] == ["DeploymentPaused"]
    assert with_pause((), paused=False, now=NOW) == ()


def test_while_paused_progress_is_not_judged() -> None:
    late = counts(3, 1, 3, conditions=(progressing("MachineSetUpdated", updated=9999),))
    source = deployment(3, paused=True, progress_deadline_seconds=10, status=late)
    new = serving("new", 1)
    snapshot = DeploymentSnapshot.of(source, [new], {new.metadata.uid: ()})
    status = status_after(snapshot, Decision(), NOW, created=False)
    condition = find(status.conditions, "Progressing")
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "DeploymentPaused")


@pytest.mark.parametrize("reason", ["InvalidSpec", "NoTargetCluster", "MachineSetCreateError"])
def test_a_refusal_ends_when_something_can_be_done(reason: str) -> None:
    refused = counts(3, 3, 3, conditions=(progressing(reason, status="False"),))
    new = serving("new", 3)
    snapshot = DeploymentSnapshot.of(deployment(3, status=refused), [new], {new.metadata.uid: ()})
    condition = find(status_after(snapshot, ROLLING, NOW, created=False).conditions, "Progressing")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "NewMachineSetAvailable")


def test_an_update_that_cannot_be_carried_out_is_told_once_and_other_conditions_stay() -> None:
    others = MachineDeploymentCondition(type="SomebodyElses", status="True")
    new = serving("new", 3)
    source = deployment(3, status=counts(3, 3, 3, conditions=(others,)))
    refused = Decision(refusal=NO_NODES)
    snapshot = DeploymentSnapshot.of(source, [new], {new.metadata.uid: ()})
    status = status_after(snapshot, refused, NOW, created=False)
    condition = find(status.conditions, "Progressing")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "NoTargetCluster")
    assert "spec.strategy.type" in condition.message
    assert find(status.conditions, "SomebodyElses") is others
    again = DeploymentSnapshot.of(deployment(3, status=status), [new], {new.metadata.uid: ()})
    assert status_after(again, refused, ago(-60), created=False) == status


def test_a_condition_keeps_its_place_and_its_transition_time() -> None:
    first = (progressing("A"), MachineDeploymentCondition(type="Frozen", status="True"))
    second = with_condition(first, "Progressing", "True", "B", "text", now=NOW)
    assert [c.type for c in second] == ["Progressing", "Frozen"]
    assert (second[0].last_update_time, second[0].last_transition_time) == (NOW, ago(600))
    third = with_condition(second, "Progressing", "False", "B", "text", now=ago(-5))
    assert third[0].last_transition_time == ago(-5)
    assert with_condition(third, "Progressing", "False", "B", "new text", now=NOW) is third


def test_a_pause_has_a_condition_of_its_own_as_long_as_it_lasts() -> None:
    missed = (progressing("ProgressDeadlineExceeded", status="False"),)
    paused = with_paused(missed, paused=True, now=NOW)
    assert [(c.type, c.status, c.reason) for c in paused] == [
        ("Progressing", "False", "ProgressDeadlineExceeded"),
        ("Paused", "True", "DeploymentPaused"),
    ]
    assert with_paused(paused, paused=True, now=NOW + timedelta(hours=1)) is paused
    assert with_paused(paused, paused=False, now=NOW) == missed
    assert with_paused(missed, paused=False, now=NOW) == missed


def test_what_a_set_says_of_its_failure_is_kept_current() -> None:
    def shown(message: str, before: Conditions) -> Conditions:
        said = MachineSetCondition(
            type="ReplicaFailure", status="True", reason="FailedCreate", message=message
        )
        failing = owned_set(status=MachineSetStatus(conditions=(said,)))
        return with_set_failure(before, failing, ())

    first = shown("no quota", ())
    assert shown("no quota", first) is first
    assert [c.message for c in shown("no network", first)] == ["no network"]


def test_a_deadline_that_passes_while_the_new_set_is_frozen_names_the_freeze() -> None:
    new = owned_set()
    meta = msgspec.structs.replace(new.metadata, labels={LABEL_FREEZE: "True"})
    new = msgspec.structs.replace(new, metadata=meta)
    present = counts(0, 0, 0, conditions=(progressing("MachineSetUpdated"),))
    source = deployment(3, progress_deadline_seconds=30, status=present)
    snapshot = DeploymentSnapshot.of(source, [new], {new.metadata.uid: ()})
    limits = Limits(freeze_at=7, unfreeze_at=5)
    status = status_after(snapshot, ROLLING, NOW, created=False, limits=limits)
    condition, frozen = find(status.conditions, "Progressing"), find(status.conditions, "Frozen")
    assert condition is not None and frozen is not None
    assert (condition.status, condition.reason) == ("False", "ProgressDeadlineExceeded")
    assert condition.message == (
        'MachineSet "set" has timed out progressing: '
        "it lacks 3 machines and is frozen (see the condition Frozen)."
    )
