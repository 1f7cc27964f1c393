"""How a deletion is recorded on its machine, step by step, and how long a failed step must wait."""

from __future__ import annotations

from collections.abc import Hashable
from typing import final

from mcm.api.machine import LastOperation, Machine, MachineClass, MachinePhase
from mcm.api.names import LABEL_FORCE_DELETION
from mcm.controllers.machine import status
from mcm.controllers.machine.backoff import MachineBackoff, Pace
from mcm.controllers.machine.deletion.provider_answers import Answer
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.runtime import Outcome
from mcm.events import EventType


@final
class DeletionRecord:
    """What the steps of a deletion share. Methods raise what a status write does."""

    def __init__(self, control: ControlCluster, backoff: MachineBackoff) -> None:
        self._control = control
        self._backoff = backoff

    async def enter(self, machine: Machine, done: LastOperation) -> Machine:
        """Enter the phase Terminating."""
        now = self._control.now()
        wanted = status.with_operation(machine.status, done, now)
        wanted = status.with_phase(wanted, MachinePhase.TERMINATING, now)
        return await self._control.write_status(machine, wanted)

    async def proceed(self, machine: Machine, done: LastOperation) -> Machine:
        """Write the marker of the next step; what failed before counts no more."""
        self._backoff.forget(machine.metadata.uid)
        wanted = status.with_operation(machine.status, done, self._control.now())
        return await self._control.write_status(machine, wanted)

    async def show(self, machine: Machine, failure: LastOperation) -> Machine:
        """Say what failed, unless it stands there already."""
        wanted = status.with_operation(machine.status, failure, self._control.now())
        return await self._control.write_failure(machine, wanted)

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
            self._backoff.forget(machine.metadata.uid)
            return await control.write_status(machine, wanted)
        control.tell(machine, EventType.WARNING, "ProviderError", answer.operation.description)
        await control.write_failure(machine, wanted)
        wait = self.failed(machine, answer.pace, self.circumstances(machine, class_))
        return Outcome(after=wait, reason="provider error")

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
