"""The driver: the verbs of the contract, as calls of the cloud."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mcm.api.machine import Machine
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    DriverError,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    InitializeMachineRequest,
    InitializeMachineResponse,
    ListMachinesRequest,
    ListMachinesResponse,
    UnsupportedDriver,
)
from mcm_provider_directory.cloud import Cloud, QuotaUsedUp, Vm, WrongToken
from mcm_provider_directory.provider_spec import spec_of

T = TypeVar("T")
_SCHEME = "directory:///"


class DirectoryDriver(UnsupportedDriver):
    """A VM's identity is its machine's name and its cluster: a repeated call finds it by these."""

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        spec, name = spec_of(request.machine_class), request.machine.metadata.name
        wanted = Vm(cluster=spec.cluster, machine=name, size=spec.size, initialized=False)
        vm = await self._ask(request, lambda cloud: cloud.create(wanted))
        if vm["size"] != spec.size:
            raise DriverError(
                Code.ALREADY_EXISTS, f"the VM {name} exists, but its size is {vm['size']}"
            )
        return CreateMachineResponse(_provider_id(vm), node_name=name)

    async def initialize_machine(
        self, request: InitializeMachineRequest
    ) -> InitializeMachineResponse:
        vm = await self._find(request, request.machine)
        await self._ask(request, lambda cloud: cloud.initialize(vm))
        return InitializeMachineResponse(_provider_id(vm), vm["machine"])

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        vm = await self._find(request, request.machine)
        if not vm["initialized"]:
            raise DriverError(
                Code.UNINITIALIZED,
                f"the VM {vm['machine']} is not initialized",
                provider_id=_provider_id(vm),
                node_name=vm["machine"],
            )
        return GetMachineStatusResponse(_provider_id(vm), vm["machine"])

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        cluster, name = spec_of(request.machine_class).cluster, request.machine.metadata.name
        await self._ask(request, lambda cloud: cloud.delete(cluster, name))
        return DeleteMachineResponse()

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        cluster = spec_of(request.machine_class).cluster
        vms = await self._ask(request, lambda cloud: cloud.of_cluster(cluster))
        return ListMachinesResponse({_provider_id(vm): vm["machine"] for vm in vms})

    async def _find(
        self, request: InitializeMachineRequest | GetMachineStatusRequest, machine: Machine
    ) -> Vm:
        cluster, name = spec_of(request.machine_class).cluster, machine.metadata.name
        vm = await self._ask(request, lambda cloud: cloud.find(cluster, name))
        if vm is None:
            raise DriverError(Code.NOT_FOUND, f"there is no VM {name} in the cluster {cluster}")
        return vm

    async def _ask(self, request: "_Request", question: Callable[[Cloud], T]) -> T:
        """Ask the cloud in a thread, as it blocks, and translate what it raises into codes."""
        directory = Path(spec_of(request.machine_class).directory)
        token = request.secret.get("token", b"").decode()
        try:
            return await asyncio.to_thread(lambda: question(Cloud(directory, token)))
        except WrongToken as error:
            raise DriverError(
                Code.UNAUTHENTICATED, "the cloud refuses the Secret's value 'token'"
            ) from error
        except QuotaUsedUp as error:
            raise DriverError(Code.RESOURCE_EXHAUSTED, "the directory is full") from error
        except PermissionError as error:
            raise DriverError(Code.PERMISSION_DENIED, str(error)) from error
        except OSError as error:
            raise DriverError(Code.UNAVAILABLE, str(error)) from error


_Request = (
    CreateMachineRequest
    | InitializeMachineRequest
    | GetMachineStatusRequest
    | DeleteMachineRequest
    | ListMachinesRequest
)


def _provider_id(vm: Vm) -> str:
    return f"{_SCHEME}{vm['cluster']}/{vm['machine']}"
