from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import LastOperation, Machine, MachinePhase
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.deletion.provider_answers import (
    on_vm_deletion_error,
    on_vm_status_error,
)
from mcm.controllers.machine.deletion.steps import DeletionStep, step_of
from mcm.controllers.machine.flow import Step, needs_creation, steps_of
from mcm.controllers.machine.last_operation import Marker, marker_in
from mcm.driver import Code, DriverError
from tests.unit.machine.objects import BORN, machine

TERMINATING = MachinePhase.TERMINATING
OF_ITS_NODE = (Step.VALIDATE, Step.DELETE_WITH_NODE, Step.SYNC_NODE, Step.CHECK_HEALTH)


@pytest.mark.parametrize(
    ("subject", "steps"),
    [
        (machine(claimed=False), (Step.CLAIM, Step.CREATE)),
        (machine(), (Step.CREATE,)),
        (machine(provider_id="p"), (Step.CREATE,)),
        (machine(phase="CrashLoopBackOff", provider_id="p"), (Step.CREATE,)),
        (machine(phase="Pending", node="n", provider_id="p"), OF_ITS_NODE),
        (machine(phase="Running", node="n", provider_id="p"), OF_ITS_NODE),
        (
            machine(phase="CrashLoopBackOff", node="n", provider_id="p"),
            (*OF_ITS_NODE, Step.CREATE),
        ),
        (
            machine(phase="Running", node="n", claimed=False, provider_id="p"),
            (Step.CLAIM, *OF_ITS_NODE),
        ),
        (machine(phase="Failed"), (Step.CREATE,)),
        (machine(phase="Failed", owned=True), ()),
        (machine(phase="Failed", owned=True, provider_id="p", node="n"), OF_ITS_NODE),
        (machine(deleted=BORN), (Step.DELETE,)),
        (machine(deleted=BORN, phase="Running", node="n"), (Step.DELETE,)),
        (machine(deleted=BORN, claimed=False), ()),
    ],
)
def test_the_steps_follow_from_what_is_observed(subject: Machine, steps: tuple[Step, ...]) -> None:
    assert steps_of(subject, has_target=True) == steps


def test_without_target_cluster_there_is_no_node_to_tend() -> None:
    subject = machine(phase="Available", provider_id="p", labels={"node": "n"})
    assert steps_of(subject, has_target=False) == ()


def test_a_machine_said_to_terminate_that_nobody_deleted_gets_no_vm() -> None:
    assert not needs_creation(machine(phase=TERMINATING))


@given(phase=st.sampled_from(["", *MachinePhase]), claimed=st.booleans(), owned=st.booleans())
def test_a_machine_on_its_way_out_is_never_made(phase: str, *, claimed: bool, owned: bool) -> None:
    subject = machine(phase=phase, deleted=BORN, claimed=claimed, owned=owned, node="n")
    assert set(steps_of(subject, has_target=True)) <= {Step.DELETE}


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


EXACT = {
    last_operation.vm_deletion_retry("E"): (
        "VM deletion failed due to - E. However, will re-try in the next resync. "
        "Initiate VM deletion"
    ),
    last_operation.vm_deletion_aborted("E"): (
        "VM deletion failed due to - E. Aborting operation. Initiate VM deletion"
    ),
    last_operation.vm_deletion_undecodable("E"): (
        "Error occurred while decoding machine error: E. Initiate VM deletion"
    ),
    last_operation.vm_gone(): (
        "VM not found. Continuing deletion flow. Initiate node object deletion"
    ),
    last_operation.no_target_cluster(): (
        "Running without target cluster, skipping node drain and volume attachment deletion. "
        "Initiate VM deletion"
    ),
    last_operation.vm_status_retry(): (
        "Error occurred with decoding machine error status while getting VM status, aborting with "
        "retry. Set machine status to termination. Now, getting VM Status"
    ),
    last_operation.vm_status_failed("E", decoded=True): (
        "Error occurred with decoding machine error status while getting VM status, aborting "
        "without retry. machine code: E Set machine status to termination. Now, getting VM Status"
    ),
    last_operation.drain_skipped(): (
        "Skipping drain as nodeName is not a valid one for machine. Initiate VM deletion"
    ),
    last_operation.drain_failed("E"): (
        "Drain failed due to - E. Will retry in next sync. Initiate node drain"
    ),
    last_operation.drain_failed_but_forced("E"): (
        "Drain failed due to - E. However, since it's a force deletion shall continue deletion of "
        "VM. Delete Volume Attachments"
    ),
    last_operation.detach_skipped("E"): (
        "Skipping deleteNodeVolAttachments due to - E. Moving to VM Deletion. Initiate VM deletion"
    ),
    last_operation.volumes_detached("N"): (
        "Node Volumes for node: N are already detached. Moving to VM Deletion. Initiate VM deletion"
    ),
    last_operation.no_live_attachments("N"): (
        "No Live VolumeAttachments for node: N. Moving to VM Deletion. Initiate VM deletion"
    ),
    last_operation.no_node_label("M"): (
        'Label "node" not present on machine "M", continuing deletion flow. '
        "Initiate machine object finalizer removal"
    ),
    last_operation.no_node_object("N"): (
        'No node object found for "N", continuing deletion flow. '
        "Initiate machine object finalizer removal"
    ),
    last_operation.node_finalizer_failed("N", "E"): (
        'Removal of finalizers from Node Object "N" failed due to error: E, Retrying. '
        "Initiate node object deletion"
    ),
    last_operation.node_deletion_failed("N", "E"): (
        'Deletion of Node Object "N" failed due to error: E. Initiate node object deletion'
    ),
    last_operation.creation_failed("E", Code.INTERNAL): "Cloud provider message - E",
    last_operation.initialization_failed("E", Code.INTERNAL): (
        "Provider error: E. Initialize VM Instance"
    ),
}


@pytest.mark.parametrize(("operation", "text"), EXACT.items())
def test_texts_are_the_go_originals_byte_for_byte(operation: LastOperation, text: str) -> None:
    assert operation.description == text


@pytest.mark.parametrize(
    ("code", "text", "pace"),
    [
        (Code.UNIMPLEMENTED, "Initiate node drain", None),
        (Code.NOT_FOUND, last_operation.vm_not_found_before_drain().description, None),
        (Code.UNINITIALIZED, last_operation.vm_uninitialized_before_drain().description, None),
        (Code.UNAVAILABLE, last_operation.vm_status_retry().description, Pace.TRANSIENT),
        (Code.ABORTED, last_operation.vm_status_retry().description, Pace.TRANSIENT),
        (Code.INTERNAL, None, Pace.LASTING),
        (None, None, Pace.LASTING),
    ],
)
def test_the_vms_status_decides_how_a_deletion_finds_its_node(
    code: Code | None, text: str | None, pace: Pace | None
) -> None:
    error = DriverError(code, "why") if code is not None else None
    answer = on_vm_status_error(error, "why")
    assert answer.pace is pace
    assert answer.operation.state == ("Failed" if pace else "Processing")
    if text is not None:
        assert answer.operation.description == text


@pytest.mark.parametrize(
    ("code", "description", "pace"),
    [
        (Code.NOT_FOUND, last_operation.vm_gone().description, None),
        (Code.UNKNOWN, last_operation.vm_deletion_retry("T").description, Pace.TRANSIENT),
        (Code.DEADLINE_EXCEEDED, last_operation.vm_deletion_retry("T").description, Pace.TRANSIENT),
        (Code.PERMISSION_DENIED, last_operation.vm_deletion_aborted("T").description, Pace.LASTING),
        (
            Code.RESOURCE_EXHAUSTED,
            last_operation.vm_deletion_aborted("T").description,
            Pace.LASTING,
        ),
        (None, last_operation.vm_deletion_undecodable("T").description, Pace.LASTING),
    ],
)
def test_a_failed_vm_deletion_says_so_and_is_tried_again(
    code: Code | None, description: str, pace: Pace | None
) -> None:
    error = DriverError(code, "why") if code is not None else None
    answer = on_vm_deletion_error(error, "T")
    assert (answer.operation.description, answer.pace) == (description, pace)
    assert answer.operation.type == "Delete"
