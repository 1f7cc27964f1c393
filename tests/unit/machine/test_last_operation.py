from __future__ import annotations

import pytest

from mcm.api.machine import LastOperation
from mcm.controllers.machine import last_operation
from mcm.driver import Code

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
