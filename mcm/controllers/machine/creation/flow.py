"""See that a machine's VM exists, and record it: one pass from nothing to Pending.

Writes: our finalizer, once the provider answered for the VM and before it is asked to make one;
identity (label, priority, provider ID); then the phase.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import final

from mcm.api.core import NodeAddress
from mcm.api.labels import is_label_value
from mcm.api.machine import Machine, MachineClass, MachinePhase, MachineStatus
from mcm.api.names import MACHINE_FINALIZER
from mcm.api.timestamps import rfc3339
from mcm.client.errors import Conflict, KubeError
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.backoff import MachineBackoff, Pace
from mcm.controllers.machine.creation import provider_answers
from mcm.controllers.machine.creation.bootstrap_token import TokenRefused
from mcm.controllers.machine.creation.deadline import CreationTime
from mcm.controllers.machine.creation.identity import identity_patch
from mcm.controllers.machine.creation.inputs import CreationInputs, inputs_for
from mcm.controllers.machine.creation.obstacles import Obstacle, ObstacleKind, Obstacles
from mcm.controllers.machine.creation.provider_answers import CreationFailure
from mcm.controllers.machine.creation.shared_backoff import Hold
from mcm.controllers.machine.creation.turns import Turns
from mcm.controllers.machine.creation.vm import CreationHeld, CreationIncomplete, Vm, VMCreation
from mcm.controllers.machine.flow import needs_creation
from mcm.controllers.machine.initialization import as_initialized, is_initialized
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.provider import Places, Purpose
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType

_LONG = timedelta(minutes=1)
"""What lasts so long is worth a write."""


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
        turns: Turns,
        obstacles: Obstacles,
        time: CreationTime,
    ) -> None:
        self._control = control
        self._vms = vms
        self._has_target = has_target
        self._places = places
        self._backoff = backoff
        self._turns = turns
        self._obstacles = obstacles
        self._time = time

    async def create(self, machine: Machine) -> Outcome:
        """Bring ``machine`` as far as possible towards Pending, or Available without target."""
        try:
            return await self._create(machine)
        except Conflict:
            raise
        except KubeError as error:
            await self._request_failed(machine, error)
            raise

    async def _create(self, machine: Machine) -> Outcome:
        inputs = inputs_for(self._control, machine)
        if isinstance(inputs, str):
            return await self._blocked(machine, ObstacleKind.INPUTS, inputs)
        key, class_key = machine.metadata.key, inputs.class_.metadata.key
        if MACHINE_FINALIZER not in inputs.class_.metadata.finalizers:
            # Its controller is about to protect it; its update is the event that brings us back.
            text = f"machine class {class_key} has no finalizer {MACHINE_FINALIZER} yet"
            if self._is_new(inputs.class_):
                self._stuck(machine, ObstacleKind.CLASS_UNPROTECTED, text)
                return Outcome(reason=text)
            return await self._long_wait(machine, ObstacleKind.CLASS_UNPROTECTED, text)
        uid, now = machine.metadata.uid, self._control.clock.monotonic()
        wait = self._backoff.wait(uid, now, circumstances=inputs.circumstances)
        if wait > 0:
            return Outcome(after=wait, reason="provider back-off")
        if (hold := self._turns.hold(inputs)) is not None:
            return await self._held(machine, inputs, hold)
        with self._places.place(Purpose.CREATION, key, class_key=class_key) as placed:
            if not placed:
                self._turns.not_begun(inputs)
                text = "all places for creations at the provider are taken by other machines"
                return await self._long_wait(machine, ObstacleKind.PLACE, text)
            with self._turns.attempt(inputs):
                return await self._make(inputs)

    async def _blocked(self, machine: Machine, kind: ObstacleKind, reason: str) -> Outcome:
        self._stuck(machine, kind, reason)
        now, late = self._control.now(), self._time.is_over(machine)
        wanted = provider_answers.on_blocked(machine, reason, now, late=late)
        if not status.is_repetition(machine.status, wanted):
            self._control.tell(machine, EventType.WARNING, "CreationBlocked", reason)
            await self._control.write_status(machine, wanted)
        return DONE

    async def _long_wait(self, machine: Machine, kind: ObstacleKind, text: str) -> Outcome:
        """Wait for an event, and say so on a machine that tells nothing yet: once, if it lasts."""
        obstacle = self._stuck(machine, kind, f"waiting: {text}")
        last = machine.status.last_operation
        if machine.phase or last.description:
            return Outcome(reason=text)
        left = self._short_for(obstacle)
        if left > 0:
            return Outcome(after=left, reason=text)
        await self._show_wait(machine, obstacle, text)
        return Outcome(reason=text)

    async def _request_failed(self, machine: Machine, error: KubeError) -> None:
        """Say that an API server fails, once, if it lasts; the pass is repeated anyway."""
        text = f"a request to an API server fails: {error}"
        obstacle = self._stuck(machine, ObstacleKind.REQUEST, text)
        current = self._control.current(machine)
        if current is not None and self._short_for(obstacle) <= 0:
            with suppress(KubeError):  # it may be this very server
                await self._show_wait(current, obstacle, text)

    def _short_for(self, obstacle: Obstacle) -> float:
        """Return the seconds until ``obstacle`` has lasted so long that it is worth a write."""
        return (obstacle.since + _LONG - self._control.now()).total_seconds()

    async def _show_wait(self, machine: Machine, obstacle: Obstacle, text: str) -> None:
        done = last_operation.creation_awaits(
            f"Waiting since {rfc3339(obstacle.since)}: {text}. It goes on by itself."
        )
        wanted = status.with_operation(machine.status, done, self._control.now())
        await self._control.write_failure(machine, wanted)

    async def _held(self, machine: Machine, inputs: CreationInputs, hold: Hold) -> Outcome:
        text = f"waiting for other machines, as one was refused: {hold.refusal.text}"
        self._stuck(machine, ObstacleKind.BACKOFF, text)
        await self._turns.show(machine, inputs, hold)
        return Outcome(after=hold.after, reason="back-off shared by class and zone")

    def _is_new(self, class_: MachineClass) -> bool:
        now = self._control.now()
        return now - (class_.metadata.creation_timestamp or now) < _LONG

    def _stuck(self, machine: Machine, kind: ObstacleKind, text: str) -> Obstacle:
        return self._obstacles.met(machine.metadata.uid, kind, text, self._control.now())

    async def _make(self, inputs: CreationInputs) -> Outcome:
        try:
            vm = await self._vms.ensure(inputs)
            self._turns.succeeded(inputs)
            machine, vm = await self._record(inputs, vm)
        except CreationIncomplete as incomplete:
            return await self._failed(inputs, incomplete.failure)
        except CreationHeld as held:
            machine = self._control.current(inputs.machine) or inputs.machine
            return await self._held(machine, inputs, held.hold)
        except TokenRefused as refusal:
            return await self._token_refused(inputs, str(refusal))
        self._backoff.forget(machine.metadata.uid)
        await self._control.write_status(machine, self._finished(machine, vm))
        self._obstacles.forget(machine.metadata.uid)
        return DONE

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
        machine = await self._identified(machine, vm)
        if self._has_target and not is_label_value(vm.node_name):
            name = vm.node_name if len(vm.node_name) < 80 else f"{vm.node_name[:80]}…"
            text = f"the Node's name {name!r} must be a label's value, so at most 63 characters"
            raise self._vms.unusable(machine, text)
        return machine, vm

    async def _identified(self, machine: Machine, vm: Vm) -> Machine:
        patch = identity_patch(
            machine,
            node_name=vm.node_name,
            provider_id=vm.provider_id,
            has_target=self._has_target,
            provider_spec=vm.made_with,
            keep_managed_fields=self._control.defaults.keep_managed_fields,
        )
        return machine if patch is None else await self._control.patch(machine, patch)

    def _finished(self, machine: Machine, vm: Vm) -> MachineStatus:
        now, wanted = self._control.now(), as_initialized(machine.status)
        if vm.known_state:
            wanted = status.with_known_state(wanted, vm.known_state)
        if machine.phase not in ("", MachinePhase.CRASH_LOOP_BACK_OFF):
            # Health has the word about every other phase; but the VM is initialised by now.
            if last_operation.says_uninitialized(wanted.last_operation):
                wanted = status.with_operation(wanted, last_operation.creating(), now)
            return wanted
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
        self._stuck(machine, ObstacleKind.PROVIDER, done)
        hold = self._turns.refused(inputs, failure)
        wait = hold.after if hold else self._count_failure(inputs, machine, failure.pace)
        machine = await control.write_failure(machine, failure.status)
        if not needs_creation(machine):
            self._turns.leave(machine)
            return DONE
        return Outcome(after=wait, reason=f"provider answered {failure.code.text}")

    async def _token_refused(self, inputs: CreationInputs, text: str) -> Outcome:
        """Nothing tells when it would be granted, so it is asked for again."""
        machine = self._control.current(inputs.machine) or inputs.machine
        await self._blocked(machine, ObstacleKind.TOKEN, text)
        wait = self._count_failure(inputs, machine, Pace.TRANSIENT)
        return Outcome(after=wait, reason="bootstrap token refused")

    def _count_failure(self, inputs: CreationInputs, machine: Machine, pace: Pace) -> float:
        now = self._control.clock.monotonic()
        circumstances = replace(inputs, machine=machine).circumstances
        uid = machine.metadata.uid
        return self._backoff.failed(uid, pace, now, circumstances=circumstances)
