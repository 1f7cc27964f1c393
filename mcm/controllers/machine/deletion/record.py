"""How a deletion that takes time is recorded on its machine, and how long a failed step waits."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from contextlib import suppress
from datetime import timedelta
from typing import final

import msgspec

from mcm.api.machine import (
    LastOperation,
    Machine,
    MachineClass,
    MachinePhase,
    MachineStatus,
    OperationState,
)
from mcm.api.names import LABEL_FORCE_DELETION, LABEL_NODE, MACHINE_FINALIZER
from mcm.client.errors import Invalid, KubeError
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.backoff import MachineBackoff, Pace
from mcm.controllers.machine.deletion.provider_answers import Answer
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.last_operation import Marker
from mcm.controllers.machine.node.matching import node_label_patch
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.runtime import Outcome
from mcm.events import EventType


@final
class DeletionRecord:
    """What the steps of a deletion share. Methods raise what a status write does.

    How far a deletion is, its steps tell one another in the machine's status, in memory. That is
    written where a step does not end at once: it is done again by whoever finds it not recorded.
    ``unwritable_names`` holds Nodes' names that could not be written, by machine UID.
    """

    def __init__(
        self,
        control: ControlCluster,
        backoff: MachineBackoff,
        unwritable_names: MutableMapping[str, str],
    ) -> None:
        self._control = control
        self._backoff = backoff
        self._unwritable_names = unwritable_names

    async def name_node(self, machine: Machine, node_name: str) -> Machine:
        """Write down which Node is the machine's. A name that is no label is used all the same."""
        try:
            named = await self._control.patch(machine, node_label_patch(machine, node_name))
            return msgspec.structs.replace(named, status=machine.status)
        except Invalid as refusal:
            note = f"The name of Node {node_name} cannot be written on the machine: {refusal}"
            self._control.tell(machine, EventType.WARNING, "NodeNameNotWritable", note)
            self._unwritable_names[machine.metadata.uid] = node_name
            return self.named(machine)

    def named(self, machine: Machine) -> Machine:
        """Return ``machine`` with its Node's name, also where that could not be written on it."""
        name = self._unwritable_names.get(machine.metadata.uid)
        if name is None or machine.node_name:
            return machine
        labels = {**machine.metadata.labels, LABEL_NODE: name}
        metadata = msgspec.structs.replace(machine.metadata, labels=labels)
        return msgspec.structs.replace(machine, metadata=metadata)

    def enter(self, machine: Machine, done: LastOperation) -> Machine:
        """Enter the phase Terminating."""
        now = self._control.now()
        wanted = status.with_operation(machine.status, done, now)
        wanted = status.with_phase(wanted, MachinePhase.TERMINATING, now)
        return msgspec.structs.replace(machine, status=wanted)

    def proceed(self, machine: Machine, done: LastOperation) -> Machine:
        """Go on to the step that ``done`` names."""
        return self._with(machine, status.with_operation(machine.status, done, self._control.now()))

    async def proceed_to_end(self, machine: Machine, done: LastOperation) -> Machine:
        """Go on to the last step. It ends the machine, unless somebody else holds it, too."""
        machine = self.proceed(machine, done)
        if machine.metadata.finalizers != (MACHINE_FINALIZER,):
            machine = await self.written(machine)
        self._backoff.forget(machine.metadata.uid)
        return machine

    def is_over(self, machine: Machine) -> bool:
        """Tell whether the machine is gone, or others' to finish."""
        known = self._control.current(machine)
        return known is None or MACHINE_FINALIZER not in known.metadata.finalizers

    def seconds_left(self, machine: Machine, span: timedelta) -> float:
        """Return the seconds until the deletion has taken ``span``."""
        now = self._control.now()
        began = machine.metadata.deletion_timestamp or now
        return (began + span - now).total_seconds()

    async def written(self, machine: Machine) -> Machine:
        """Write how far the deletion is; no request if that is what is written."""
        written = await self._write(machine, machine.status)
        if written.metadata.resource_version != machine.metadata.resource_version:
            self._backoff.forget(machine.metadata.uid)  # what failed before does no more
        return written

    async def written_if_possible(self, machine: Machine) -> Machine:
        """The same, where what is under way is not to end because of that."""
        with suppress(KubeError):
            return await self.written(machine)
        return machine

    async def show(self, machine: Machine, failure: LastOperation) -> Machine:
        """Say what failed, unless it stands there already."""
        wanted = status.with_operation(machine.status, failure, self._control.now())
        return await self._write_failure(machine, wanted)

    async def show_drain(
        self, machine: Machine, shown: MachineStatus, failure: LastOperation | None
    ) -> None:
        """Write what ``shown`` says of the drain, with its ``failure`` if there is one, as one
        request; none if all of it stands there. An earlier failure is taken back."""
        if failure is not None:
            wanted = status.with_operation(shown, failure, self._control.now())
            await self._write_failure(machine, wanted)
        elif shown is not machine.status:
            if shown.last_operation.state == OperationState.FAILED:
                again = last_operation.terminating(Marker.DRAIN)
                shown = status.with_operation(shown, again, self._control.now())
            await self._write(machine, shown)

    async def answered(
        self,
        machine: Machine,
        class_: MachineClass,
        answer: Answer,
        *,
        known_state: str | None = None,
    ) -> StepResult:
        """Record the provider's answer: go on, or leave the provider alone for a while."""
        control = self._control
        wanted = status.with_operation(machine.status, answer.operation, control.now())
        if known_state is not None:
            wanted = status.with_known_state(wanted, known_state)
        if answer.pace is None:
            return self._with(machine, wanted)
        control.tell(machine, EventType.WARNING, "ProviderError", answer.operation.description)
        await self._write_failure(machine, wanted)
        wait = self.failed(machine, answer.pace, self.circumstances(machine, class_))
        return Outcome(after=wait, reason="provider error")

    @staticmethod
    def _with(machine: Machine, wanted: MachineStatus) -> Machine:
        return msgspec.structs.replace(machine, status=wanted)

    async def _write(self, machine: Machine, wanted: MachineStatus) -> Machine:
        """Write the status. Where the server does not take it, whatever is in it, the flow goes on
        from memory: each pass then begins anew, and finds done what was done."""
        known = self._control.current(machine)
        version = machine.metadata.resource_version
        if known is not None and known.metadata.resource_version == version:
            machine = known  # with the status as the server has it
        try:
            return await self._control.write_status(machine, wanted)
        except Invalid as refusal:
            note = f"The deletion goes on, but cannot be recorded: {refusal}"
            self._control.tell(machine, EventType.WARNING, "StatusNotWritable", note)
            return msgspec.structs.replace(machine, status=wanted)

    async def _write_failure(self, machine: Machine, wanted: MachineStatus) -> Machine:
        if status.is_repetition(machine.status, wanted):
            return machine
        return await self._write(machine, wanted)

    def failed(self, machine: Machine, pace: Pace, circumstances: Hashable) -> float:
        """Count a failure; return the seconds until the step may be tried again."""
        now = self._control.clock.monotonic()
        return self._backoff.failed(machine.metadata.uid, pace, now, circumstances=circumstances)

    def wait_for(self, machine: Machine, circumstances: Hashable) -> float:
        """Return the seconds that are left of that time; 0: try."""
        now = self._control.clock.monotonic()
        return self._backoff.wait(machine.metadata.uid, now, circumstances=circumstances)

    def failures(self, machine: Machine) -> int:
        return self._backoff.count(machine.metadata.uid)

    def circumstances(self, machine: Machine, class_: MachineClass) -> tuple[str, ...]:
        """What a failed call to the provider, or what follows from it, depends on."""
        forced = machine.metadata.labels.get(LABEL_FORCE_DELETION, "")
        versions = self._control.credentials(class_).versions
        return (forced, class_.metadata.resource_version, *versions)
