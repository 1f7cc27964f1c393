"""Which Node is to be drained: known, or claimed by a Node, or asked of the provider."""

from __future__ import annotations

from typing import final

from mcm.api.machine import Machine, MachineClass
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion import provider_answers
from mcm.controllers.machine.deletion.left_behind import is_class_at_fault, is_forced
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import InLine, StepResult
from mcm.controllers.machine.deletion.telling import DeletionTelling
from mcm.controllers.machine.last_operation import Marker
from mcm.controllers.machine.ports import ControlCluster, TargetCluster, class_key
from mcm.controllers.provider import Places, Provider, ProviderFailed, Purpose
from mcm.controllers.runtime import Outcome
from mcm.driver.contract import GetMachineStatusRequest


@final
class NodeNameSearch:
    """The step FIND_NODE."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster | None,
        record: DeletionRecord,
        telling: DeletionTelling,
        *,
        provider: Provider,
        places: Places,
    ) -> None:
        self._control = control
        self._target = target
        self._record = record
        self._telling = telling
        self._provider = provider
        self._places = places

    async def find(self, machine: Machine) -> StepResult:
        """Ask the provider under which name the VM registers, unless a Node tells."""
        if self._target is None:
            return self._record.proceed(machine, last_operation.no_target_cluster())
        if machine.node_name:
            return self._record.proceed(machine, last_operation.terminating(Marker.DRAIN))
        if name := self._target.owners.find(machine).found:
            return await self._named(machine, name)
        class_ = self._control.class_of(machine)
        if class_ is None:
            reason = f"machine class {class_key(machine)} not found"
            return self._record.proceed(machine, last_operation.vm_status_unknowable(reason))
        if wait := self._record.wait_for(machine, self._record.circumstances(machine, class_)):
            return Outcome(after=wait, reason="provider back-off")
        with self._places.place(
            Purpose.DELETION, machine.metadata.key, class_key=class_.metadata.key
        ) as placed:
            if not placed:
                return InLine()
            return await self._ask(machine, class_)

    async def _ask(self, machine: Machine, class_: MachineClass) -> StepResult:
        credentials = self._control.credentials(class_)
        request = GetMachineStatusRequest(machine, class_, credentials.data)
        asked = self._telling.during(machine)
        try:
            found = await self._provider.status(request, slow=asked)
        except ProviderFailed as failure:
            machine = asked.machine
            if is_forced(machine) and is_class_at_fault(failure, credentials):
                unknown = last_operation.vm_status_unknowable(failure.text)
                return self._record.proceed(machine, unknown)
            answer = provider_answers.on_vm_status_error(failure.error, failure.text)
            return await self._record.answered(machine, class_, answer)
        machine = asked.machine
        if not found.node_name:
            return self._record.proceed(machine, last_operation.terminating(Marker.DRAIN))
        return await self._named(machine, found.node_name)

    async def _named(self, machine: Machine, node_name: str) -> Machine:
        machine = await self._record.name_node(machine, node_name)
        return self._record.proceed(machine, last_operation.terminating(Marker.DRAIN))
