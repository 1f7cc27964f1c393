"""How far a rollout is said to be, and what ends the watching of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from mcm.api.core import NodeCondition
from mcm.api.machine import (
    CurrentStatus,
    LastOperation,
    Machine,
    MachineDeployment,
    MachineDeploymentCondition,
    MachineDeploymentStatus,
    MachineSet,
    MachineStatus,
)
from mcm.api.meta import ObjectMeta
from mcm.api.names import ANNOTATION_REVISION, LABEL_FREEZE
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.rollout.progress import Progress, progress_of, trouble_of
from tests.unit.deployment.objects import NOW, deployment, owned_set, progressing, template

REST = 'Waiting for deployment "pool" rollout to finish: '


def look(
    present: MachineDeployment,
    *machines: Machine,
    revision: int = 0,
    sets: Sequence[MachineSet] = (owned_set(),),
) -> Progress:
    owned = {s.metadata.uid: machines for s in sets}
    return progress_of(DeploymentSnapshot.of(present, sets, owned), revision=revision)


def frozen(machine_set: MachineSet) -> MachineSet:
    meta = msgspec.structs.replace(machine_set.metadata, labels={LABEL_FREEZE: "True"})
    return msgspec.structs.replace(machine_set, metadata=meta)


def status(
    updated: int, replicas: int, available: int, *, observed: int = 1
) -> MachineDeploymentStatus:
    return MachineDeploymentStatus(
        observed_generation=observed,
        updated_replicas=updated,
        replicas=replicas,
        available_replicas=available,
    )


@pytest.mark.parametrize(
    ("present", "message"),
    [
        (status(3, 3, 3, observed=0), "Waiting for deployment spec update to be observed..."),
        (status(1, 4, 3), f"{REST}1 out of 3 new machines have been updated..."),
        (status(3, 5, 3), f"{REST}2 old machines are pending termination..."),
        (status(4, 4, 3), f"{REST}1 surplus machines are pending termination..."),
        (status(3, 3, 2), f"{REST}2 of 3 updated machines are available..."),
    ],
)
def test_what_is_waited_for_is_said_in_kubectl_s_words(
    present: MachineDeploymentStatus, message: str
) -> None:
    progress = look(deployment(status=present))
    assert progress.message == message
    assert not progress.over


def test_it_is_done_when_all_machines_are_new_and_serve() -> None:
    progress = look(deployment(status=status(3, 3, 3)))
    assert (progress.done, progress.failure) == (True, "")
    assert progress.message == 'deployment "pool" successfully rolled out'


def test_a_paused_one_is_waited_for_and_says_how_to_go_on() -> None:
    progress = look(deployment(status=status(1, 4, 3), paused=True))
    assert not progress.over
    assert "mcm rollout resume" in progress.message


def with_condition(condition: MachineDeploymentCondition) -> MachineDeployment:
    said = msgspec.structs.replace(status(1, 4, 3), conditions=(condition,))
    return deployment(status=said)


@pytest.mark.parametrize(
    ("condition", "failure"),
    [
        (
            progressing("ProgressDeadlineExceeded", status="False"),
            'deployment "pool" exceeded its progress deadline (said before)',
        ),
        (
            progressing("InvalidSpec", status="False"),
            'deployment "pool" does not get on: InvalidSpec (said before)',
        ),
        (
            MachineDeploymentCondition(type="Frozen", status="True", message="too many"),
            'deployment "pool" is frozen (too many)',
        ),
    ],
)
def test_what_will_not_get_on_by_itself_is_a_failure(
    condition: MachineDeploymentCondition, failure: str
) -> None:
    assert look(with_condition(condition), sets=(frozen(owned_set()),)).failure == failure


FROZEN = MachineDeploymentCondition(type="Frozen", status="True", message="too many")


def test_a_frozen_set_that_lacks_nothing_holds_nothing_up() -> None:
    others = owned_set("old", of=template("before"))
    for sets in ((frozen(owned_set(replicas=0)),), (frozen(others), owned_set()), (others,)):
        progress = look(with_condition(FROZEN), sets=sets)
        assert (progress.failure, progress.over) == ("", False)


def test_who_may_not_see_sets_is_told_what_the_deployment_says_of_a_freeze() -> None:
    assert "is frozen (too many)" in look(with_condition(FROZEN), sets=()).failure


def test_what_an_earlier_generation_failed_of_does_not_count() -> None:
    said = status(1, 4, 3, observed=0)
    condition = progressing("ProgressDeadlineExceeded", status="False")
    present = deployment(status=msgspec.structs.replace(said, conditions=(condition,)))
    assert not look(present).over


def test_a_failure_that_is_over_does_not_hide_that_all_is_done() -> None:
    said = msgspec.structs.replace(
        status(3, 3, 3), conditions=(progressing("ProgressDeadlineExceeded", status="False"),)
    )
    assert look(deployment(status=said)).done


def test_the_label_alone_tells_that_it_is_frozen() -> None:
    present = deployment(status=status(1, 4, 3))
    meta = msgspec.structs.replace(present.metadata, labels={LABEL_FREEZE: "True"})
    labelled = msgspec.structs.replace(present, metadata=meta)
    assert look(labelled, sets=(frozen(owned_set()),)).failure.endswith("is frozen")


def test_one_that_is_being_deleted_is_not_waited_for() -> None:
    present = deployment(status=status(3, 3, 3))
    meta = msgspec.structs.replace(present.metadata, deletion_timestamp=NOW)
    assert "is being deleted" in look(msgspec.structs.replace(present, metadata=meta)).failure


def test_another_revision_than_the_one_that_is_meant_ends_it() -> None:
    present = deployment(status=status(1, 4, 3), annotations={ANNOTATION_REVISION: "3"})
    assert not look(present, revision=3).over
    assert look(present, revision=2).failure == (
        "desired revision (2) is different from the running revision (3)"
    )


def machine(name: str, phase: str, operation: LastOperation) -> Machine:
    return Machine(
        metadata=ObjectMeta(name=name),
        status=MachineStatus(current_status=CurrentStatus(phase=phase), last_operation=operation),
    )


def test_machines_in_trouble_are_named_with_their_own_code_and_text() -> None:
    full = LastOperation(description="no\n quota", error_code="ResourceExhausted", state="Failed")
    fine = LastOperation(description="Created", state="Successful")
    progress = look(
        deployment(status=status(1, 4, 3)),
        machine("c", "CrashLoopBackOff", full),
        machine("b", "Running", fine),
        machine("a", "Unknown", fine),
        machine("d", "Terminating", full),
    )
    assert progress.troubles == (
        ("a", "Unknown: Created"),
        ("c", "CrashLoopBackOff [ResourceExhausted]: no quota"),
        ("d", "Terminating [ResourceExhausted]: no quota"),
    )
    assert trouble_of(machine("e", "", LastOperation())) == "new"


def test_a_machine_whose_drain_is_held_up_is_named_with_what_holds_it() -> None:
    draining = machine("d", "Terminating", LastOperation(description="Initiate node drain"))
    message = "held by a disruption budget: shop/a since 2026-01-01T00:00:00Z; leaving: shop/b"
    held = NodeCondition(type="Drained", status="False", reason="Blocked", message=message)
    draining = msgspec.structs.replace(
        draining, status=msgspec.structs.replace(draining.status, conditions=(held,))
    )
    progress = look(deployment(status=status(1, 4, 3)), draining)
    text = "its drain is held up: held by a disruption budget: shop/a since 2026-01-01T00:00:00Z"
    assert progress.troubles == (("d", f"Terminating: {text}"),)
