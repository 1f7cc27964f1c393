"""The texts of ``status.lastOperation``: what users read, and the markers a deletion resumes from.

Each text of the deletion flow ends in the marker of the step that comes next. They are wire values
shared with the Go original: either implementation finishes what the other one began.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Protocol

from mcm.api.machine import LastOperation, MachinePhase, OperationState, OperationType
from mcm.api.timestamps import rfc3339
from mcm.driver.codes import Code


class Marker(StrEnum):
    """What a deletion does next. The order is that of recognition in a text that has several."""

    FIND_NODE = "Set machine status to termination. Now, getting VM Status"
    DRAIN = "Initiate node drain"
    DETACH_VOLUMES = "Delete Volume Attachments"
    DELETE_VM = "Initiate VM deletion"
    DELETE_NODE = "Initiate node object deletion"
    REMOVE_FINALIZER = "Initiate machine object finalizer removal"


def marker_in(description: str) -> Marker | None:
    """Find the marker of a description: the one it ends in, else the first it contains.

    The end comes first because texts may quote a provider, which could say anything.
    """
    for marker in Marker:
        if description.endswith(marker):
            return marker
    return next((marker for marker in Marker if marker in description), None)


def operation(
    kind: OperationType | str, state: OperationState, description: str, *, code: str = ""
) -> LastOperation:
    """Build a last operation; its time is set when it is written."""
    return LastOperation(description=description, error_code=code, state=state, type=kind)


# Creation -----------------------------------------------------------------------------------------

_CREATE = OperationType.CREATE
_INITIALIZE = "Initialize VM Instance"


def creating() -> LastOperation:
    return operation(_CREATE, OperationState.PROCESSING, "Creating machine on cloud provider")


def created() -> LastOperation:
    """Where there is no target cluster, a created machine is a finished one."""
    return operation(_CREATE, OperationState.SUCCESSFUL, "Created machine on cloud provider")


def creation_failed(error: str, code: Code) -> LastOperation:
    description = f"Cloud provider message - {error}"
    return operation(_CREATE, OperationState.FAILED, description, code=code.text)


def initialization_failed(error: str, code: Code) -> LastOperation:
    description = f"Provider error: {error}. {_INITIALIZE}"
    return operation(_CREATE, OperationState.FAILED, description, code=code.text)


def says_uninitialized(done: LastOperation) -> bool:
    return done.state == OperationState.FAILED and done.description.endswith(_INITIALIZE)


def stale_node() -> LastOperation:
    return operation(_CREATE, OperationState.FAILED, "VM using old node obj")


def creation_blocked(reason: str) -> LastOperation:
    """Something must be mended before the provider can be asked; ``reason`` says what."""
    return operation(_CREATE, OperationState.FAILED, reason)


def creation_awaits(reason: str) -> LastOperation:
    """Nothing is wrong but that it takes long."""
    return operation(_CREATE, OperationState.PROCESSING, reason)


def creation_held(reason: str, code: Code) -> LastOperation:
    """The provider refuses others alike, so it is not asked for this one."""
    return operation(_CREATE, OperationState.FAILED, reason, code=code.text)


def creation_timed_out(
    machine: str, timeout: str, *, stuck: str, is_replaced: bool, code: str
) -> LastOperation:
    end = (
        "Its MachineSet replaces it."
        if is_replaced
        else "No set replaces it: it is tried further until it succeeds or is deleted."
    )
    text = f"Machine {machine} was not created within {timeout}; {stuck}. {end}"
    return operation(_CREATE, OperationState.FAILED, text, code=code)


def token_lost() -> LastOperation:
    text = (
        "The VM cannot join the cluster: its bootstrap token is gone, deleted before the VM used "
        "it. Delete the machine, or wait until its creation timeout ends it."
    )
    return operation(_CREATE, OperationState.FAILED, text)


# Updates of VMs that run -------------------------------------------------------------------------

_UPDATE = OperationType.UPDATE


def updating(class_: str) -> LastOperation:
    text = f"Updating VM on cloud provider as machine class {class_} says"
    return operation(_UPDATE, OperationState.PROCESSING, text)


def updated(class_: str) -> LastOperation:
    text = f"Updated VM on cloud provider as machine class {class_} says"
    return operation(_UPDATE, OperationState.SUCCESSFUL, text)


def update_failed(error: str, code: Code) -> LastOperation:
    text = f"Update of the VM failed, the machine stays as it is. Cloud provider message - {error}"
    return operation(_UPDATE, OperationState.FAILED, text, code=code.text)


def update_blocked(reason: str) -> LastOperation:
    """Something must be mended before the provider can be asked; ``reason`` says what."""
    return operation(_UPDATE, OperationState.FAILED, f"Update of the VM must wait: {reason}")


# Health -------------------------------------------------------------------------------------------

_HEALTH = OperationType.HEALTH_CHECK
_INVALID = "The machine is invalid:"


def joined(machine: str, duration: str) -> LastOperation:
    text = f"Machine {machine} successfully joined the cluster in {duration}"
    return operation(_CREATE, OperationState.SUCCESSFUL, text)


def rejoined(machine: str) -> LastOperation:
    text = f"Machine {machine} successfully re-joined the cluster"
    return operation(_HEALTH, OperationState.SUCCESSFUL, text)


def unhealthy(machine: str, conditions: str) -> LastOperation:
    text = (
        f"Machine {machine} is unhealthy - changing MachinePhase to Unknown. "
        f"Node conditions: {conditions}"
    )
    return operation(_HEALTH, OperationState.PROCESSING, text)


def node_missing(machine: str) -> LastOperation:
    text = (
        f"Node object went missing. Machine {machine} is unhealthy - "
        "changing MachinePhase to Unknown"
    )
    return operation(_HEALTH, OperationState.PROCESSING, text)


def join_timed_out(machine: str, timeout: str, *, kind: str) -> LastOperation:
    text = f"Machine {machine} failed to join the cluster in {timeout}."
    return operation(kind, OperationState.FAILED, text)


def health_timed_out(machine: str, timeout: str, conditions: str, *, kind: str) -> LastOperation:
    text = (
        f"Machine {machine} health checks failing since last {timeout}. "
        f"Updating machine phase to Failed. Node Conditions: {conditions}"
    )
    return operation(kind, OperationState.FAILED, text)


def invalid(reason: str, *, kind: str) -> LastOperation:
    """Of a machine that exists. Of the types only that of a creation is kept: of others a failure
    says that an update of the VM, or a drain, is not done."""
    kept = kind if kind == _CREATE else _HEALTH
    return operation(kept, OperationState.FAILED, f"{_INVALID} {reason}")


def is_work_under_way(done: LastOperation) -> bool:
    """Tell whether somebody updates a machine that lives, in vain or not, and will say how it
    ends."""
    updating = done.type in (_UPDATE, _IN_PLACE, OperationType.DRAIN_NODE)
    return updating and done.state != OperationState.SUCCESSFUL


def says_invalid(done: LastOperation) -> bool:
    return done.description.startswith(_INVALID)


def mended(phase: str, *, kind: str) -> LastOperation:
    """What an invalid machine hid is told again, as far as the phase still knows it."""
    if phase == MachinePhase.PENDING:
        return creating()  # that it joins is still to be told
    state = OperationState.SUCCESSFUL
    if phase in (MachinePhase.FAILED, MachinePhase.UNKNOWN):
        state = OperationState.FAILED
    text = f"The machine is valid again, and {phase}"
    return operation(kind or _HEALTH, state, text)


# Update in place ----------------------------------------------------------------------------------

_IN_PLACE = OperationType.IN_PLACE_UPDATE
_LONGEST_REASON = 1000


def in_place_updating(machine: str) -> LastOperation:
    text = f"Machine {machine} is undergoing an in-place update"
    return operation(_IN_PLACE, OperationState.PROCESSING, text)


def in_place_updated(machine: str) -> LastOperation:
    text = f"Machine {machine} successfully updated dependencies"
    return operation(_IN_PLACE, OperationState.SUCCESSFUL, text)


def in_place_failed(machine: str, reason: str) -> LastOperation:
    text = f"Machine {machine} failed to update dependencies: {failed_reason(reason)}"
    return operation(_IN_PLACE, OperationState.FAILED, text)


def in_place_timed_out(machine: str, timeout: str) -> LastOperation:
    text = f"Machine {machine} failed to in-place update in {timeout}."
    return operation(_IN_PLACE, OperationState.FAILED, text)


def in_place_withdrawn(machine: str) -> LastOperation:
    text = f"Machine {machine} is no longer selected for an in-place update"
    return operation(_IN_PLACE, OperationState.SUCCESSFUL, text)


def in_place_again(machine: str) -> LastOperation:
    text = f"Machine {machine} is drained for another attempt of its in-place update"
    return operation(_IN_PLACE, OperationState.PROCESSING, text)


def in_place_drain_failed(error: str) -> LastOperation:
    text = f"Drain failed due to - {error}. Will retry in next sync. {Marker.DRAIN}"
    return operation(OperationType.DRAIN_NODE, OperationState.PROCESSING, text)


def failed_reason(words: str) -> str:
    """Return the node agent's reason of a failure, cut to a length that fits a status."""
    words = words.strip() or "the node agent gave no reason"
    return words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON]}..."


# Deletion -----------------------------------------------------------------------------------------


def _deleting(text: str, marker: Marker, *, failed: bool = False) -> LastOperation:
    state = OperationState.FAILED if failed else OperationState.PROCESSING
    return operation(OperationType.DELETE, state, f"{text} {marker}" if text else str(marker))


def terminating(marker: Marker) -> LastOperation:
    """The bare marker: nothing happened yet but that the next step is known."""
    return _deleting("", marker)


def no_target_cluster() -> LastOperation:
    text = "Running without target cluster, skipping node drain and volume attachment deletion."
    return _deleting(text, Marker.DELETE_VM)


def vm_not_found_before_drain() -> LastOperation:
    return _deleting("VM was not found at provider. Moving forward to node drain.", Marker.DRAIN)


def vm_uninitialized_before_drain() -> LastOperation:
    text = "VM instance was not initialized. Moving forward to node drain."
    return _deleting(text, Marker.DRAIN)


def vm_status_unknowable(reason: str) -> LastOperation:
    """Nobody can be asked for the VM, so its Node's name stays unknown."""
    return _deleting(f"VM status is unknown: {reason}. Moving forward to node drain.", Marker.DRAIN)


def vm_status_retry() -> LastOperation:
    text = (
        "Error occurred with decoding machine error status while getting VM status, "
        "aborting with retry."
    )
    return _deleting(text, Marker.FIND_NODE, failed=True)


def vm_status_failed(error: str, *, decoded: bool) -> LastOperation:
    text = (
        "Error occurred with decoding machine error status while getting VM status, "
        f"aborting without retry. {'machine code: ' if decoded else ''}{error}"
    )
    return _deleting(text, Marker.FIND_NODE, failed=True)


def drain_skipped() -> LastOperation:
    text = "Skipping drain as nodeName is not a valid one for machine."
    return _deleting(text, Marker.DELETE_VM)


def drain_left_out(reason: str) -> LastOperation:
    return _deleting(f"Skipping drain: {reason}.", Marker.DELETE_VM)


def drained() -> LastOperation:
    return _deleting("Drain successful.", Marker.DELETE_VM)


def force_drained() -> LastOperation:
    return _deleting("Force Drain successful.", Marker.DETACH_VOLUMES)


def drain_failed(error: str) -> LastOperation:
    text = f"Drain failed due to - {error}. Will retry in next sync."
    return _deleting(text, Marker.DRAIN, failed=True)


def node_conditions_failed(error: str) -> LastOperation:
    text = (
        f"Drain failed due to failure in update of node conditions - {error}. "
        "Will retry in next sync."
    )
    return _deleting(text, Marker.DRAIN, failed=True)


def drain_failed_but_forced(error: str) -> LastOperation:
    text = (
        f"Drain failed due to - {error}. However, since it's a force deletion shall continue "
        "deletion of VM."
    )
    return _deleting(text, Marker.DETACH_VOLUMES)


def detach_skipped(error: str) -> LastOperation:
    text = f"Skipping deleteNodeVolAttachments due to - {error}. Moving to VM Deletion."
    return _deleting(text, Marker.DELETE_VM)


def volumes_detached(node: str) -> LastOperation:
    text = f"Node Volumes for node: {node} are already detached. Moving to VM Deletion."
    return _deleting(text, Marker.DELETE_VM)


def no_live_attachments(node: str) -> LastOperation:
    text = f"No Live VolumeAttachments for node: {node}. Moving to VM Deletion."
    return _deleting(text, Marker.DELETE_VM)


class Wait(Protocol):
    """Words for a wait for volumes that are to leave a Node, so many of them at first."""

    def __call__(
        self, node: str, volumes: int, since: datetime, until: datetime
    ) -> LastOperation: ...


def out_of_service(node: str, volumes: int, since: datetime, until: datetime) -> LastOperation:
    return _deleting(_out_of_service(node, volumes, since, until), Marker.DETACH_VOLUMES)


def detaching(node: str, volumes: int, since: datetime, until: datetime) -> LastOperation:
    return _deleting(_detaching(node, volumes, since, until), Marker.DETACH_VOLUMES)


def _out_of_service(node: str, volumes: int, since: datetime, until: datetime) -> str:
    return (
        f"Node {node} is out of service since {rfc3339(since)}. Waiting until {rfc3339(until)} for "
        f"its volumes to be detached ({volumes} at first)."
    )


def _detaching(node: str, volumes: int, since: datetime, until: datetime) -> str:
    return (
        f"VolumeAttachments for node {node} are being deleted since {rfc3339(since)}. Waiting "
        f"until {rfc3339(until)} for their end ({volumes} at first)."
    )


def detach_failed(error: str) -> LastOperation:
    text = f"Deletion of volume attachments failed due to - {error}. Retrying."
    return _deleting(text, Marker.DETACH_VOLUMES, failed=True)


_VM_DELETED = "VM deletion was successful."
_VM_GONE = "VM not found. Continuing deletion flow."


def vm_deleted() -> LastOperation:
    return _deleting(_VM_DELETED, Marker.DELETE_NODE)


def vm_gone() -> LastOperation:
    return _deleting(_VM_GONE, Marker.DELETE_NODE)


def says_vm_deleted(done: LastOperation) -> bool:
    """Tell whether the provider has confirmed that there is no VM any more, and nothing failed
    since."""
    return done.description.startswith((_VM_DELETED, _VM_GONE))


def out_of_service_after_vm(
    node: str, volumes: int, since: datetime, until: datetime
) -> LastOperation:
    waiting = _out_of_service(node, volumes, since, until)
    return _deleting(f"{_VM_DELETED} {waiting}", Marker.DELETE_NODE)


def detaching_after_vm(node: str, volumes: int, since: datetime, until: datetime) -> LastOperation:
    waiting = _detaching(node, volumes, since, until)
    return _deleting(f"{_VM_DELETED} {waiting}", Marker.DELETE_NODE)


def vm_never_created(refusal: str) -> LastOperation:
    text = (
        f"There is no VM to delete: none was recorded, and the provider finds none ({refusal}). "
        "Continuing deletion flow."
    )
    return _deleting(text, Marker.DELETE_NODE)


def vm_left_behind(reason: str) -> LastOperation:
    """The machine goes without its VM having been deleted."""
    text = f"VM deletion was left out: {reason}. Continuing deletion flow."
    return _deleting(text, Marker.DELETE_NODE)


def vm_deletion_retry(error: str) -> LastOperation:
    text = f"VM deletion failed due to - {error}. However, will re-try in the next resync."
    return _deleting(text, Marker.DELETE_VM, failed=True)


def vm_deletion_aborted(error: str) -> LastOperation:
    text = f"VM deletion failed due to - {error}. Aborting operation."
    return _deleting(text, Marker.DELETE_VM, failed=True)


def vm_deletion_undecodable(error: str) -> LastOperation:
    text = f"Error occurred while decoding machine error: {error}."
    return _deleting(text, Marker.DELETE_VM, failed=True)


def vm_deletion_blocked(reason: str) -> LastOperation:
    return _deleting(f"VM deletion must wait: {reason}.", Marker.DELETE_VM, failed=True)


def no_node_label(machine: str) -> LastOperation:
    text = f'Label "node" not present on machine "{machine}", continuing deletion flow.'
    return _deleting(text, Marker.REMOVE_FINALIZER)


def no_node_object(node: str) -> LastOperation:
    text = f'No node object found for "{node}", continuing deletion flow.'
    return _deleting(text, Marker.REMOVE_FINALIZER)


def node_left(reason: str) -> LastOperation:
    text = f"Node object is left as it is: {reason}. Continuing deletion flow."
    return _deleting(text, Marker.REMOVE_FINALIZER)


def node_deleted(node: str) -> LastOperation:
    text = f'Deletion of Node Object "{node}" is successful.'
    return _deleting(text, Marker.REMOVE_FINALIZER)


def node_unread(node: str, error: str) -> LastOperation:
    text = f'Retrieval of Node Object "{node}" failed due to error: {error}, Retrying.'
    return _deleting(text, Marker.DELETE_NODE, failed=True)


def node_finalizer_failed(node: str, error: str) -> LastOperation:
    text = (
        f'Removal of finalizers from Node Object "{node}" failed due to error: {error}, Retrying.'
    )
    return _deleting(text, Marker.DELETE_NODE, failed=True)


def node_deletion_failed(node: str, error: str) -> LastOperation:
    text = f'Deletion of Node Object "{node}" failed due to error: {error}.'
    return _deleting(text, Marker.DELETE_NODE, failed=True)
