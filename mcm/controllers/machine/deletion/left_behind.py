"""Whether a machine may go although its VM cannot be deleted, as its class is at fault.

It may if its user says so (by force), or if there certainly is no VM: none was recorded, and the
provider finds none. A machine that was never to have one does not bear our finalizer, which is put
on it just before the provider is asked for a VM.
"""

from __future__ import annotations

from typing import final

from mcm.api.machine import Machine, MachineClass
from mcm.api.names import LABEL_FORCE_DELETION
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.provider import Credentials, Provider, ProviderFailed
from mcm.drain.mode import go_bool
from mcm.driver.codes import Code
from mcm.driver.contract import GetMachineStatusRequest, ListMachinesRequest
from mcm.events import EventType


def is_forced(machine: Machine) -> bool:
    """Tell whether somebody wants the machine away whatever stays behind."""
    return go_bool(machine.metadata.labels.get(LABEL_FORCE_DELETION, ""))


def is_class_at_fault(failure: ProviderFailed, credentials: Credentials) -> bool:
    """Tell whether a call failed for what stands in the class, or lacks its secrets: only somebody
    who mends that makes it work."""
    return failure.code is Code.INVALID_ARGUMENT or bool(credentials.problems)


def tell_left_behind(control: ControlCluster, machine: Machine, reason: str) -> None:
    """Name what may be left, for people to look for."""
    recorded = machine.spec.provider_id
    vm = f"VM {recorded}" if recorded else f"A VM of machine {machine.metadata.name}"
    known = "was not deleted" if recorded else "may exist, though none was recorded"
    note = f"{vm} {known}: {reason}. Look for it at the provider"
    control.tell(machine, EventType.WARNING, "VMLeftBehind", note)


@final
class VMAbsence:
    """Asks the provider whether a machine without recorded VM has none."""

    def __init__(self, control: ControlCluster, provider: Provider) -> None:
        self._control = control
        self._provider = provider

    async def is_certain(self, machine: Machine, class_: MachineClass) -> bool:
        """Tell whether there is no VM, by its status or, where that cannot be had, by the list."""
        if machine.spec.provider_id:
            return False
        data = self._control.credentials(class_).data
        try:
            await self._provider.status(GetMachineStatusRequest(machine, class_, data))
        except ProviderFailed as failure:
            if failure.error is None or failure.code is not Code.UNIMPLEMENTED:
                return failure.error is not None and failure.code is Code.NOT_FOUND
        else:
            return False
        try:
            listed = await self._provider.list(ListMachinesRequest(class_, data))
        except ProviderFailed:
            return False
        return machine.metadata.name not in listed.machines.values()
