"""See that a machine's VM exists, and record it: one pass from nothing to Pending.

Writes: our finalizer, once the provider answered for the VM and before it is asked to make one;
identity (label, priority, provider ID); then the phase.
"""

from __future__ import annotations

from datetime import datetime
from typing import final

from mcm.api.core import NodeAddress
from mcm.api.machine import Machine, MachinePhase, MachineStatus
from mcm.api.names import MACHINE_FINALIZER
from mcm.client.errors import KubeError
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.backoff import MachineBackoff
from mcm.controllers.machine.creation import provider_answers
from mcm.controllers.machine.creation.deadline import is_late, join_deadline
from mcm.controllers.machine.creation.identity import identity_patch
from mcm.controllers.machine.creation.inputs import CreationInputs, inputs_for
from mcm.controllers.machine.creation.provider_answers import CreationFailure
from mcm.controllers.machine.creation.vm import CreationIncomplete, Vm, VMCreation
from mcm.controllers.machine.flow import needs_creation
from mcm.controllers.machine.initialization import as_initialized, is_initialized
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.provider import Places, Purpose
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType


@final
class Creation:
    """The creation flow. ``has_target``: the VM is to join a cluster."""

    def __init__(
        self,
        control: ControlCluster,
        vms: VMCreation,
        *,
        has_target: bool,
        places: Places,
        backoff: MachineBackoff,
    ) -> None:
        self._control = control
        self._vms = vms
        self._has_target = has_target
        self._places = places
        self._backoff = backoff

    async def create(self, machine: Machine) -> Outcome:
        """Bring ``machine`` as far as possible towards Pending, or Available without target."""
        inputs = inputs_for(self._control, machine)
        if isinstance(inputs, str):
            return await self._blocked(machine, inputs)
        if MACHINE_FINALIZER not in inputs.class_.metadata.finalizers:
            # Its controller is about to protect it; its update is the event that brings us back.
            return Outcome(reason="waiting until the class is protected")
        uid, now = machine.metadata.uid, self._control.clock.monotonic()
        wait = self._backoff.wait(uid, now, circumstances=inputs.circumstances)
        if wait > 0:
            return await self._waiting(machine, wait)
        key, class_key = machine.metadata.key, inputs.class_.metadata.key
        with self._places.place(Purpose.CREATION, key, class_key=class_key) as placed:
            if not placed:
                return Outcome(reason="waiting for a place to create")
            return await self._make(inputs)

    async def _blocked(self, machine: Machine, reason: str) -> Outcome:
        now, settings = self._control.now(), self._control.settings_of(machine)
        wanted = provider_answers.on_blocked(machine, reason, settings, now)
        if not status.is_repetition(machine.status, wanted):
            self._control.tell(machine, EventType.WARNING, "CreationBlocked", reason)
            machine = await self._control.write_status(machine, wanted)
        return self._at_deadline(machine, now)

    async def _waiting(self, machine: Machine, wait: float) -> Outcome:
        """Leave the provider alone, but do not miss the moment when the machine is too late."""
        control, now = self._control, self._control.now()
        late = is_late(machine, control.settings_of(machine), now)
        if late and machine.phase == MachinePhase.CRASH_LOOP_BACK_OFF:
            failed = provider_answers.on_lateness(machine, now)
            control.tell(machine, EventType.WARNING, "Failed", "It could not be created in time")
            machine = await control.write_status(machine, failed)
            if not needs_creation(machine):
                return DONE
        again = Outcome(after=wait, reason="provider back-off")
        return again.sooner(self._at_deadline(machine, now))

    def _at_deadline(self, machine: Machine, now: datetime) -> Outcome:
        """Look again just when the time to join is over; DONE if it is."""
        deadline = join_deadline(machine, self._control.settings_of(machine), now)
        left = (deadline - now).total_seconds()
        return Outcome(after=left + 0.001, reason="creation timeout") if left >= 0 else DONE

    async def _make(self, inputs: CreationInputs) -> Outcome:
        try:
            vm = await self._vms.ensure(inputs)
            machine, vm = await self._record(inputs, vm)
        except CreationIncomplete as incomplete:
            return await self._failed(inputs, incomplete.failure)
        self._backoff.forget(machine.metadata.uid)
        machine = await self._control.write_status(machine, self._finished(machine, vm))
        return self._at_deadline(machine, self._control.now())

    async def _record(self, inputs: CreationInputs, vm: Vm) -> tuple[Machine, Vm]:
        """Write the VM's identity on the machine, and initialise the VM even if that fails."""
        machine = self._control.current(inputs.machine) or inputs.machine  # claimed meanwhile
        trouble: KubeError | None = None
        try:
            machine = await self._identified(machine, vm)
        except KubeError as error:
            trouble = error  # the VM must not stay half made because of it
        if not vm.initialized or not is_initialized(machine):
            vm = await self._vms.initialize(inputs, machine, vm)
        if trouble is not None:
            raise trouble
        return await self._identified(machine, vm), vm

    async def _identified(self, machine: Machine, vm: Vm) -> Machine:
        patch = identity_patch(
            machine,
            node_name=vm.node_name,
            provider_id=vm.provider_id,
            has_target=self._has_target,
            provider_spec=vm.made_with,
        )
        return machine if patch is None else await self._control.patch(machine, patch)

    def _finished(self, machine: Machine, vm: Vm) -> MachineStatus:
        now, wanted = self._control.now(), as_initialized(machine.status)
        if vm.known_state:
            wanted = status.with_known_state(wanted, vm.known_state)
        if machine.phase not in ("", MachinePhase.CRASH_LOOP_BACK_OFF):
            return wanted  # health has the word about every other phase
        if self._has_target:
            wanted = status.with_operation(wanted, last_operation.creating(), now)
            return status.with_phase(wanted, MachinePhase.PENDING, now, timeout_active=True)
        hostname = (NodeAddress(type="Hostname", address=vm.node_name),) if vm.node_name else ()
        wanted = status.with_addresses(wanted, (*vm.addresses, *hostname))
        wanted = status.with_operation(wanted, last_operation.created(), now)
        return status.with_phase(wanted, MachinePhase.AVAILABLE, now)

    async def _failed(self, inputs: CreationInputs, failure: CreationFailure) -> Outcome:
        """Show the failure on the machine, and leave the provider alone for a while."""
        control = self._control
        # Its identity may have been written meanwhile.
        machine = control.current(inputs.machine) or inputs.machine
        done = failure.status.last_operation.description
        control.tell(machine, EventType.WARNING, "ProviderError", done)
        wait = self._backoff.failed(
            machine.metadata.uid,
            failure.pace,
            control.clock.monotonic(),
            circumstances=CreationInputs(machine, inputs.class_, inputs.credentials).circumstances,
        )
        machine = await control.write_failure(machine, failure.status)
        if not needs_creation(machine):
            return DONE
        again = Outcome(after=wait, reason=f"provider answered {failure.code.text}")
        return again.sooner(self._at_deadline(machine, control.now()))
