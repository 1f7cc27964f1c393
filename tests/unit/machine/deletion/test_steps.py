from __future__ import annotations

import pytest

from mcm.api.machine import LastOperation, Machine, MachinePhase
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion.steps import DeletionStep, step_of
from mcm.controllers.machine.last_operation import Marker, marker_in
from tests.unit.machine.objects import BORN, machine

TERMINATING = MachinePhase.TERMINATING


def described(text: str, phase: str = TERMINATING) -> Machine:
    return machine(phase=phase, operation=LastOperation(description=text), deleted=BORN)


WRITTEN = [
    (last_operation.terminating(Marker.FIND_NODE), DeletionStep.FIND_NODE),
    (last_operation.vm_status_retry(), DeletionStep.FIND_NODE),
    (last_operation.vm_status_failed("e", decoded=True), DeletionStep.FIND_NODE),
    (last_operation.vm_status_failed("e", decoded=False), DeletionStep.FIND_NODE),
    (last_operation.terminating(Marker.DRAIN), DeletionStep.DRAIN),
    (last_operation.vm_not_found_before_drain(), DeletionStep.DRAIN),
    (last_operation.vm_uninitialized_before_drain(), DeletionStep.DRAIN),
    (last_operation.vm_status_unknowable("r"), DeletionStep.DRAIN),
    (last_operation.drain_failed("e"), DeletionStep.DRAIN),
    (last_operation.node_conditions_failed("e"), DeletionStep.DRAIN),
    (last_operation.force_drained(), DeletionStep.DETACH_VOLUMES),
    (last_operation.drain_failed_but_forced("e"), DeletionStep.DETACH_VOLUMES),
    (last_operation.detach_failed("e"), DeletionStep.DETACH_VOLUMES),
    (last_operation.out_of_service("n", 2, BORN, BORN), DeletionStep.DETACH_VOLUMES),
    (last_operation.detaching("n", 2, BORN, BORN), DeletionStep.DETACH_VOLUMES),
    (last_operation.no_target_cluster(), DeletionStep.DELETE_VM),
    (last_operation.drain_skipped(), DeletionStep.DELETE_VM),
    (last_operation.drained(), DeletionStep.DELETE_VM),
    (last_operation.detach_skipped("e"), DeletionStep.DELETE_VM),
    (last_operation.volumes_detached("n"), DeletionStep.DELETE_VM),
    (last_operation.no_live_attachments("n"), DeletionStep.DELETE_VM),
    (last_operation.vm_deletion_retry("e"), DeletionStep.DELETE_VM),
    (last_operation.vm_deletion_aborted("e"), DeletionStep.DELETE_VM),
    (last_operation.vm_deletion_undecodable("e"), DeletionStep.DELETE_VM),
    (last_operation.vm_deletion_blocked("r"), DeletionStep.DELETE_VM),
    (last_operation.vm_deleted(), DeletionStep.DELETE_NODE),
    (last_operation.vm_gone(), DeletionStep.DELETE_NODE),
    (last_operation.vm_never_created("r"), DeletionStep.DELETE_NODE),
    (last_operation.node_finalizer_failed("n", "e"), DeletionStep.DELETE_NODE),
    (last_operation.node_deletion_failed("n", "e"), DeletionStep.DELETE_NODE),
    (last_operation.no_node_label("m"), DeletionStep.REMOVE_FINALIZER),
    (last_operation.no_node_object("n"), DeletionStep.REMOVE_FINALIZER),
    (last_operation.node_deleted("n"), DeletionStep.REMOVE_FINALIZER),
]


@pytest.mark.parametrize(("operation", "step"), WRITTEN)
def test_every_text_we_write_resumes_at_the_step_it_announces(
    operation: LastOperation, step: DeletionStep
) -> None:
    assert step_of(described(operation.description)) is step


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("Set machine status to termination. Now, getting VM Status", DeletionStep.FIND_NODE),
        ("Initiate node drain", DeletionStep.DRAIN),
        (
            "VM was not found at provider. Moving forward to node drain. Initiate node drain",
            DeletionStep.DRAIN,
        ),
        ("Drain successful. Initiate VM deletion", DeletionStep.DELETE_VM),
        ("Force Drain successful. Delete Volume Attachments", DeletionStep.DETACH_VOLUMES),
        (
            "VM deletion was successful. Initiate node object deletion",
            DeletionStep.DELETE_NODE,
        ),
        (
            'Deletion of Node Object "n" is successful. Initiate machine object finalizer removal',
            DeletionStep.REMOVE_FINALIZER,
        ),
        ("Drain successful. Initiate VM deletion (added by somebody)", DeletionStep.DELETE_VM),
        ("Deleting machine from cloud provider", DeletionStep.BEGIN),
        ("", DeletionStep.BEGIN),
    ],
)
def test_a_deletion_is_taken_over_wherever_the_go_original_left_it(
    text: str, step: DeletionStep
) -> None:
    assert step_of(described(text)) is step


def test_a_provider_text_that_quotes_another_marker_misleads_nobody() -> None:
    quoted = last_operation.vm_deletion_retry(
        "said: Initiate node drain, Delete Volume Attachments"
    )
    assert marker_in(quoted.description) is Marker.DELETE_VM


def test_outside_the_phase_a_deletion_begins_whatever_the_text_says() -> None:
    assert step_of(described("Initiate VM deletion", phase="Running")) is DeletionStep.BEGIN
