"""Deletes a machine's VM, once the provider has a place for the call."""

from __future__ import annotations

from typing import final

from mcm.api.machine import Machine, MachineClass
from mcm.api.names import LABEL_FORCE_DELETION
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion import provider_answers
from mcm.controllers.machine.deletion.left_behind import (
    VMAbsence,
    is_class_at_fault,
    is_forced,
    tell_left_behind,
)
from mcm.controllers.machine.deletion.provider_answers import Answer
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import InLine, StepResult
from mcm.controllers.machine.deletion.telling import DeletionTelling
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.ports import ControlCluster, class_key
from mcm.controllers.provider import Places, Provider, ProviderFailed, Purpose
from mcm.controllers.runtime import Outcome
from mcm.driver.contract import DeleteMachineRequest
from mcm.events import EventType


@final
class VMDeletion:
    """The step DELETE_VM. ``deleted`` holds the machines of whose VM's end it was told, by UID."""

    def __init__(
        self,
        control: ControlCluster,
        record: DeletionRecord,
        telling: DeletionTelling,
        *,
        provider: Provider,
        places: Places,
        metrics: MachineMetrics,
        deleted: set[str],
    ) -> None:
        self._control = control
        self._record = record
        self._telling = telling
        self._provider = provider
        self._places = places
        self._metrics = metrics
        self._deleted = deleted
        self._absence = VMAbsence(control, provider)

    async def delete(self, machine: Machine) -> StepResult:
        """Have the provider delete the machine's VM, once there is a place for the call."""
        class_ = self._control.class_of(machine)
        if class_ is None:
            return await self._without_class(machine)
        if wait := self._record.wait_for(machine, self._record.circumstances(machine, class_)):
            return Outcome(after=wait, reason="provider back-off")
        with self._places.place(
            Purpose.DELETION, machine.metadata.key, class_key=class_.metadata.key
        ) as placed:
            if not placed:
                return InLine()
            return await self._ask(machine, class_)

    async def _without_class(self, machine: Machine) -> StepResult:
        """Nobody can be asked to delete the VM: wait for the class, if there is a VM."""
        reason = f"machine class {class_key(machine)} not found"
        if is_forced(machine) or not machine.spec.provider_id:
            return await self._leave(machine, reason)
        remedy = (
            f"{reason}, yet VM {machine.spec.provider_id} exists: create the class anew, or label "
            f"the machine {LABEL_FORCE_DELETION}=True to leave the VM behind"
        )
        self._control.tell(machine, EventType.WARNING, "DeletionBlocked", remedy)
        await self._record.show(machine, last_operation.vm_deletion_blocked(remedy))
        return Outcome(reason="waiting for the class")

    async def _leave(self, machine: Machine, reason: str) -> StepResult:
        """Go on without the VM's deletion, and say so: nobody else will know of it."""
        tell_left_behind(self._control, machine, reason)
        machine = self._record.proceed(machine, last_operation.vm_left_behind(reason))
        return await self._record.written(machine)

    async def _ask(self, machine: Machine, class_: MachineClass) -> StepResult:
        credentials = self._control.credentials(class_)
        request = DeleteMachineRequest(machine, class_, credentials.data)
        asked = self._telling.during(machine)
        try:
            response = await self._provider.delete(request, slow=asked)
        except ProviderFailed as failure:
            result = await self._refused(asked.machine, class_, failure)
            return await self._record.written(result) if isinstance(result, Machine) else result
        machine = asked.machine
        self._count_once(machine, class_)
        return await self._record.answered(
            machine,
            class_,
            Answer(last_operation.vm_deleted()),
            known_state=response.last_known_state,
        )

    def _count_once(self, machine: Machine, class_: MachineClass) -> None:
        """Tell of the VM's end and measure it, but not again where the step is done again."""
        if machine.metadata.uid in self._deleted:
            return
        self._deleted.add(machine.metadata.uid)
        self._metrics.deleted(machine, class_, self._control.now())
        if vm := machine.spec.provider_id:
            self._control.tell(machine, EventType.NORMAL, "VMDeleted", f"Deleted VM {vm}")

    async def _refused(
        self, machine: Machine, class_: MachineClass, failure: ProviderFailed
    ) -> StepResult:
        # A missing secret may not matter to a deletion; if it fails, it is worth knowing.
        credentials = self._control.credentials(class_)
        text = "; ".join((failure.text, *credentials.problems))
        if is_class_at_fault(failure, credentials):
            if is_forced(machine):
                return await self._leave(machine, text)
            if await self._absence.is_certain(machine, class_):
                return self._record.proceed(machine, last_operation.vm_never_created(text))
        answer = provider_answers.on_vm_deletion_error(failure.error, text)
        state = failure.error.last_known_state if failure.error else ""
        return await self._record.answered(machine, class_, answer, known_state=state)
