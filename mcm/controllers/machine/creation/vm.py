"""See that a machine's VM exists, and record it: one pass from nothing to Pending.

Writes: identity (label, priority, provider ID), then the phase. The finalizer was written before
this act began, so that whatever it makes is cleaned up. A VM that exists already, from a pass that
was cut short or another implementation, is adopted.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import final

import msgspec

from mcm.api.core import NodeAddress
from mcm.api.machine import Machine, MachineClass, MachinePhase, MachineStatus
from mcm.api.names import KIND_MACHINE_CLASS, MACHINE_FINALIZER
from mcm.api.validation import describe, validate_machine, validate_machine_class
from mcm.client.errors import KubeError
from mcm.controllers.machine import flow, last_operation, status
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.creation import provider_answers
from mcm.controllers.machine.creation.deadline import is_late, join_deadline
from mcm.controllers.machine.creation.identity import identity_patch
from mcm.controllers.machine.creation.provider_answers import Existence, Failure
from mcm.controllers.machine.creation.user_data import user_data_for
from mcm.controllers.machine.ports import Ports, Progress
from mcm.controllers.machine.writes import write_failure, write_machine, write_status
from mcm.controllers.provider import Credentials, ProviderFailed, Purpose
from mcm.controllers.runtime import DONE, Outcome
from mcm.driver.codes import Code
from mcm.driver.contract import (
    CreateMachineRequest,
    DeleteMachineRequest,
    GetMachineStatusRequest,
    InitializeMachineRequest,
)
from mcm.driver.errors import DriverError
from mcm.events import EventType

logger = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class _Order:
    """A machine to make, with all that its provider must be given."""

    machine: Machine
    class_: MachineClass
    credentials: Credentials

    @property
    def circumstances(self) -> Hashable:
        """What a failure depends on: when any of it changes, trying again makes sense at once."""
        return (
            self.machine.metadata.generation,
            self.class_.metadata.resource_version,
            self.credentials.versions,
        )


@final
@dataclass(frozen=True, slots=True)
class _Vm:
    provider_id: str
    node_name: str
    addresses: tuple[NodeAddress, ...] = ()
    known_state: str = ""
    initialized: bool = True


@final
class _Incomplete(Exception):
    """The creation got as far as it can for now; ``status`` says why."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.code.text)


async def create(ports: Ports, machine: Machine) -> Progress:
    """Bring ``machine`` as far as possible towards Pending (Available without target cluster)."""
    order = _order(ports, machine)
    if isinstance(order, str):
        return await _blocked(ports, machine, order)
    if MACHINE_FINALIZER not in order.class_.metadata.finalizers:
        # Its controller is about to protect it; its update is the event that brings us back.
        return Progress(machine, Outcome(reason="waiting until the class is protected"))
    uid, now = machine.metadata.uid, ports.clock.monotonic()
    wait = ports.backoff.wait(uid, now, circumstances=order.circumstances)
    if wait > 0:
        return await _waiting(ports, machine, wait)
    key, class_key = machine.metadata.key, order.class_.metadata.key
    with ports.places.place(Purpose.CREATION, key, class_key=class_key) as placed:
        if not placed:
            return Progress(machine, Outcome(reason="waiting for a place to create"))
        return await _make(ports, order)


def _order(ports: Ports, machine: Machine) -> _Order | str:
    """Gather what is needed; a text says what is missing or wrong, and what to do about it."""
    if errors := validate_machine(machine):
        return f"the machine is invalid: {describe(errors)}"
    class_ref, key = machine.spec.class_, f"{machine.metadata.namespace}/{machine.spec.class_.name}"
    if class_ref.kind != KIND_MACHINE_CLASS:
        return f"the machine is invalid: spec.class.kind must be {KIND_MACHINE_CLASS}"
    class_ = ports.class_of(machine)
    if class_ is None:
        return f"machine class {key} not found: create it, or correct spec.class.name"
    if class_.metadata.deletion_timestamp and MACHINE_FINALIZER not in class_.metadata.finalizers:
        return f"machine class {key} is being deleted: create another one"
    if errors := validate_machine_class(class_):
        return f"machine class {key} is invalid: {describe(errors)}"
    credentials = ports.credentials(class_)
    if credentials.problems:
        return "; ".join(credentials.problems)
    return _Order(machine, class_, credentials)


async def _blocked(ports: Ports, machine: Machine, reason: str) -> Progress:
    now, limits = ports.now(), ports.limits(machine)
    wanted = provider_answers.on_blocked(machine, reason, limits, now)
    if status.is_repetition(machine.status, wanted):
        return Progress(machine, _at_deadline(ports, machine, now))
    ports.tell(machine, EventType.WARNING, "CreationBlocked", reason)
    machine = await write_status(ports, machine, wanted)
    return Progress(machine, _at_deadline(ports, machine, now))


async def _waiting(ports: Ports, machine: Machine, wait: float) -> Progress:
    """Leave the provider alone, but do not miss the moment when the machine is too late."""
    now = ports.now()
    late = is_late(machine, ports.limits(machine), now)
    if late and machine.phase == MachinePhase.CRASH_LOOP_BACK_OFF:
        failed = status.with_phase(machine.status, MachinePhase.FAILED, now)
        ports.tell(machine, EventType.WARNING, "Failed", "It could not be created in time")
        machine = await write_status(ports, machine, failed)
        if not flow.needs_creation(machine):
            return Progress(machine)
    again = Outcome(after=wait, reason="provider back-off")
    return Progress(machine, again.sooner(_at_deadline(ports, machine, now)))


def _at_deadline(ports: Ports, machine: Machine, now: datetime) -> Outcome:
    """Look again just when the time to join is over; DONE if it is."""
    left = (join_deadline(machine, ports.limits(machine), now) - now).total_seconds()
    return Outcome(after=left + 0.001, reason="creation timeout") if left >= 0 else DONE


async def _make(ports: Ports, order: _Order) -> Progress:
    machine = order.machine
    try:
        vm = await _find(ports, order) or await _build(ports, order)
        machine = await _record(ports, order, vm)
    except _Incomplete as incomplete:
        return await _failed(ports, order, incomplete.failure)
    ports.backoff.forget(machine.metadata.uid)
    machine = await write_status(ports, machine, _finished(ports, machine, vm))
    return Progress(machine, _at_deadline(ports, machine, ports.now()))


async def _find(ports: Ports, order: _Order) -> _Vm | None:
    """Ask the provider for the machine's VM; None if there certainly is none yet."""
    machine = order.machine
    request = GetMachineStatusRequest(machine, order.class_, order.credentials.data)
    try:
        found = await ports.provider.status(request)
    except ProviderFailed as failure:
        return _unfound(ports, machine, failure)
    return _Vm(found.provider_id, found.node_name, found.addresses)


def _unfound(ports: Ports, machine: Machine, failure: ProviderFailed) -> _Vm | None:
    recorded = machine.spec.provider_id
    match provider_answers.existence(failure.error, recorded=bool(recorded)):
        case Existence.ABSENT:
            return None
        case Existence.ASSUMED:
            return _Vm(recorded, machine.node_name)
        case Existence.UNINITIALIZED if failure.error is not None:
            error = failure.error
            return _Vm(error.provider_id, error.node_name, initialized=False)
        case _:
            raise _incomplete(ports, machine, failure) from failure


async def _build(ports: Ports, order: _Order) -> _Vm:
    machine = order.machine
    data = await user_data_for(ports, machine, order.credentials.data)
    try:
        made = await ports.provider.create(CreateMachineRequest(machine, order.class_, data))
    except ProviderFailed as failure:
        raise _incomplete(ports, machine, failure) from failure
    ports.metrics.created(machine, order.class_, ports.now())
    await _refuse_stale_node(ports, order, made.provider_id, made.node_name)
    note = f"Created VM {made.provider_id}"
    ports.tell(machine, EventType.NORMAL, "VMCreated", note)
    return _Vm(
        made.provider_id,
        made.node_name,
        made.addresses,
        known_state=made.last_known_state,
        initialized=False,
    )


async def _refuse_stale_node(ports: Ports, order: _Order, provider_id: str, node_name: str) -> None:
    """Take the VM back if an older Node bears its name: pods would run on both."""
    machine = order.machine
    node = ports.target.nodes.get(node_name) if ports.target else None
    if not provider_answers.is_stale(node, machine, provider_id):
        return
    spec = msgspec.structs.replace(machine.spec, provider_id=provider_id)
    stub = msgspec.structs.replace(machine, spec=spec)
    request = DeleteMachineRequest(stub, order.class_, order.credentials.data)
    try:
        await ports.provider.delete(request)
    except ProviderFailed as failure:
        logger.warning(
            "a VM that would use an old node object could not be deleted",
            extra={"machine": machine.metadata.key, "cause": failure.text},
        )
    failed = provider_answers.on_stale_node(machine, ports.now())
    raise _Incomplete(Failure(failed, Pace.LASTING, Code.ALREADY_EXISTS))


async def _record(ports: Ports, order: _Order, vm: _Vm) -> Machine:
    """Write the VM's identity on the machine, and initialise the VM even if that fails."""
    machine = order.machine
    if not vm.provider_id or (ports.target is not None and not vm.node_name):
        error = DriverError(Code.INTERNAL, "the provider named no provider ID or no node name")
        raise _incomplete(ports, machine, ProviderFailed(error, str(error)))
    trouble: KubeError | None = None
    try:
        machine = await _write_identity(ports, machine, vm)
    except KubeError as error:
        trouble = error  # the VM must not stay half made because of it
    if not vm.initialized:
        await _initialize(ports, order, machine)
    if trouble is not None:
        raise trouble
    return machine


async def _write_identity(ports: Ports, machine: Machine, vm: _Vm) -> Machine:
    patch = identity_patch(
        machine,
        node_name=vm.node_name,
        provider_id=vm.provider_id,
        has_target=ports.target is not None,
    )
    return machine if patch is None else await write_machine(ports, machine, patch)


async def _initialize(ports: Ports, order: _Order, machine: Machine) -> None:
    request = InitializeMachineRequest(machine, order.class_, order.credentials.data)
    try:
        await ports.provider.initialize(request)
    except ProviderFailed as failure:
        if failure.code is Code.UNIMPLEMENTED and failure.error is not None:
            return
        now = ports.now()
        failed = provider_answers.on_initialization_error(
            machine, failure.error, failure.text, ports.limits(machine), now
        )
        raise _Incomplete(failed) from failure
    ports.metrics.initialized(machine, order.class_, ports.now())


def _finished(ports: Ports, machine: Machine, vm: _Vm) -> MachineStatus:
    now, wanted = ports.now(), machine.status
    if vm.known_state:
        wanted = status.with_known_state(wanted, vm.known_state)
    if machine.phase not in ("", MachinePhase.CRASH_LOOP_BACK_OFF):
        return wanted  # health has the word about every other phase
    if ports.target is not None:
        wanted = status.with_operation(wanted, last_operation.creating(), now)
        return status.with_phase(wanted, MachinePhase.PENDING, now, timeout_active=True)
    hostname = (NodeAddress(type="Hostname", address=vm.node_name),) if vm.node_name else ()
    wanted = status.with_addresses(wanted, (*vm.addresses, *hostname))
    wanted = status.with_operation(wanted, last_operation.created(), now)
    return status.with_phase(wanted, MachinePhase.AVAILABLE, now)


def _incomplete(ports: Ports, machine: Machine, failure: ProviderFailed) -> _Incomplete:
    limits, now = ports.limits(machine), ports.now()
    return _Incomplete(
        provider_answers.on_creation_error(machine, failure.error, failure.text, limits, now)
    )


async def _failed(ports: Ports, order: _Order, failure: Failure) -> Progress:
    """Show the failure on the machine, and leave the provider alone for a while."""
    machine = ports.latest(order.machine)  # its identity may have been written meanwhile
    done = failure.status.last_operation.description
    ports.tell(machine, EventType.WARNING, "ProviderError", done)
    circumstances = _Order(machine, order.class_, order.credentials).circumstances
    wait = ports.backoff.failed(
        machine.metadata.uid,
        failure.pace,
        ports.clock.monotonic(),
        circumstances=circumstances,
    )
    machine = await write_failure(ports, machine, failure.status)
    if not flow.needs_creation(machine):
        return Progress(machine)
    again = Outcome(after=wait, reason=f"provider answered {failure.code.text}")
    return Progress(machine, again.sooner(_at_deadline(ports, machine, ports.now())))
