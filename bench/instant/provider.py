"""mcm's driver of the instant cloud: a VM exists as soon as it is asked for."""

from __future__ import annotations

from typing import final

from mcm.api.machine import Machine
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
    DriverError,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    ListMachinesRequest,
    ListMachinesResponse,
    ProviderContext,
    UnsupportedDriver,
)

SCHEME = "instant://"


def create(context: ProviderContext) -> Driver:
    """Entry point ``instant``: it needs neither cluster nor clock."""
    del context
    return InstantDriver()


@final
class InstantDriver(UnsupportedDriver):
    """A VM has its machine's name, and so will its Node.

    The cloud lives as long as the process: after a restart, a VM is known by the provider ID that
    its machine bears.
    """

    def __init__(self) -> None:
        self._vms: dict[str, str] = {}
        """Machine name by provider ID."""

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        provider_id, name = _id_of(request.machine), request.machine.metadata.name
        self._vms[provider_id] = name
        return CreateMachineResponse(provider_id, node_name=name)

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        self._vms.pop(request.machine.spec.provider_id or _id_of(request.machine), None)
        return DeleteMachineResponse()

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        machine = request.machine
        if not machine.spec.provider_id and _id_of(machine) not in self._vms:
            raise DriverError(Code.NOT_FOUND, f"no VM named {machine.metadata.name}")
        return GetMachineStatusResponse(_id_of(machine), machine.metadata.name)

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        return ListMachinesResponse(dict(self._vms))


def _id_of(machine: Machine) -> str:
    return f"{SCHEME}/{machine.metadata.namespace}/{machine.metadata.name}"
