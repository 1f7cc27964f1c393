"""Deletes a machine's VM, once the provider has a place for the call."""

from __future__ import annotations

from typing import final

from mcm.api.machine import Machine, MachineClass
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion import provider_answers
from mcm.controllers.machine.deletion.provider_answers import Answer
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.ports import ControlCluster, class_key
from mcm.controllers.provider import Places, Provider, ProviderFailed, Purpose
from mcm.controllers.runtime import Outcome
from mcm.driver.contract import DeleteMachineRequest
from mcm.events import EventType


@final
class VMDeletion:
    """The step DELETE_VM."""

    def __init__(
        self,
        control: ControlCluster,
        record: DeletionRecord,
        *,
        provider: Provider,
        places: Places,
        metrics: MachineMetrics,
    ) -> None:
        self._control = control
        self._record = record
        self._provider = provider
        self._places = places
        self._metrics = metrics

    async def delete(self, machine: Machine) -> StepResult:
        """Have the provider delete the machine's VM, once there is a place for the call."""
        class_ = self._control.class_of(machine)
        if class_ is None:
            return await self._without_class(machine)
        if wait := self._record.wait_for(machine, self._record.circumstances(class_)):
            return Outcome(after=wait, reason="provider back-off")
        with self._places.place(
            Purpose.DELETION, machine.metadata.key, class_key=class_.metadata.key
        ) as placed:
            if not placed:
                return Outcome(reason="waiting for a place to delete")
            return await self._ask(machine, class_)

    async def _without_class(self, machine: Machine) -> StepResult:
        """Nobody can be asked to delete the VM: wait for the class, if there was ever a VM."""
        reason = f"machine class {class_key(machine)} not found"
        if not machine.spec.provider_id:
            return await self._record.proceed(machine, last_operation.vm_never_created(reason))
        remedy = f"{reason}, yet VM {machine.spec.provider_id} exists: create the class anew"
        self._control.tell(machine, EventType.WARNING, "DeletionBlocked", remedy)
        await self._record.show(machine, last_operation.vm_deletion_blocked(remedy))
        return Outcome(reason="waiting for the class")

    async def _ask(self, machine: Machine, class_: MachineClass) -> StepResult:
        credentials = self._control.credentials(class_)
        request = DeleteMachineRequest(machine, class_, credentials.data)
        try:
            response = await self._provider.delete(request)
        except ProviderFailed as failure:
            # A missing secret may not matter to a deletion; if it fails, it is worth knowing.
            text = "; ".join((failure.text, *credentials.problems))
            answer = provider_answers.on_vm_deletion_error(failure.error, text)
            state = failure.error.last_known_state if failure.error else ""
            return await self._record.answered(machine, class_, answer, known_state=state)
        self._metrics.deleted(machine, class_, self._control.now())
        note = f"Deleted VM {machine.spec.provider_id}"
        self._control.tell(machine, EventType.NORMAL, "VMDeleted", note)
        return await self._record.answered(
            machine,
            class_,
            Answer(last_operation.vm_deleted()),
            known_state=response.last_known_state,
        )
