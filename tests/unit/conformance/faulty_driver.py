"""A driver over a cloud in memory that keeps the contract, but for the faults it is given."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import final

import msgspec

from mcm.api.machine import MachineClass
from mcm.clock import SystemClock
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    DriverError,
    GenerateMachineClassForMigrationRequest,
    GenerateMachineClassForMigrationResponse,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    GetVolumeIDsRequest,
    GetVolumeIDsResponse,
    InitializeMachineRequest,
    InitializeMachineResponse,
    ListMachinesRequest,
    ListMachinesResponse,
    UnsupportedDriver,
    UpdateMachineRequest,
    UpdateMachineResponse,
)

PASSWORD = b"correct horse battery staple"
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Vm:
    cluster: str
    machine: str
    id: str
    initialized: bool = False


@dataclass(slots=True)
class Cloud:
    """``made`` counts creations, so that each VM has an ID of its own."""

    vms: dict[str, Vm] = field(default_factory=dict)
    made: int = 0
    half_made: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@final
class FaultyDriver(UnsupportedDriver):
    """``faults`` are names of things done wrong; without them the contract is kept."""

    def __init__(self, cloud: Cloud, faults: frozenset[str] = frozenset()) -> None:
        self._cloud = cloud
        self._faults = faults
        self._mine: dict[str, Vm] = {}

    def _has(self, fault: str) -> bool:
        return fault in self._faults

    async def _await(self, turns: int = 3) -> None:
        for _ in range(turns):
            await SystemClock().sleep(0)

    # ---- create ---------------------------------------------------------------------------------

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        name, cluster = request.machine.metadata.name, _cluster(request.machine_class)
        self._misbehave(request)
        await self._check(request)
        await self._await()
        vm = None if self._has("never adopts") else self._known(name, cluster)
        if vm is None:
            if self._has("looks, waits, makes"):
                await self._await()
            vm = self._make(name, cluster)
        if self._has("makes in two steps"):
            self._cloud.half_made.add(vm.id)
            await self._await()
            self._cloud.half_made.discard(vm.id)
        if self._has("swallows its cancellation"):
            await _deaf(6.0)
        return self._made(vm)

    def _misbehave(self, request: CreateMachineRequest) -> None:
        if self._has("blocks"):
            _block(1.2)
        if self._has("logs the secret"):
            logger.info("creating with %s", request.secret["password"].decode())
        if self._has("changes its request"):
            request.machine_class.provider_spec["seen"] = True
        if self._has("raises anything"):
            raise KeyError("subnet")
        if self._has("cancels itself"):
            raise asyncio.CancelledError

    async def _check(self, request: CreateMachineRequest) -> None:
        if request.secret["password"] != PASSWORD and not self._has("takes any secret"):
            if self._has("refuses too late"):
                self._make(request.machine.metadata.name, _cluster(request.machine_class))
            code = Code.INTERNAL if self._has("calls all internal") else Code.UNAUTHENTICATED
            raise DriverError(code, "the password is wrong")

    def _known(self, name: str, cluster: str) -> Vm | None:
        if self._has("knows only its own"):
            return self._mine.get(name)
        for vm in self._cloud.vms.values():
            if vm.machine == name and vm.cluster == cluster:
                return vm
        return None

    def _make(self, name: str, cluster: str) -> Vm:
        self._cloud.made += 1
        if self._has("never reuses a name") and name in self._cloud.names:
            raise DriverError(Code.ALREADY_EXISTS, "the name was used before")
        self._cloud.names.add(name)
        number = 0 if self._has("shares one ID") else self._cloud.made
        vm = Vm(cluster, name, f"memory:///{cluster}/{number}/{name}")
        if self._has("shares one ID"):
            vm.id = "memory:///0"
        self._cloud.vms[vm.id] = self._mine[name] = vm
        return vm

    def _made(self, vm: Vm) -> CreateMachineResponse:
        node = "n" * 64 if self._has("names a long node") else vm.machine
        if self._has("answers nothing"):
            return None  # type: ignore[return-value]
        if self._has("names no ID"):
            return CreateMachineResponse("", node)
        state = PASSWORD.decode() if self._has("remembers the secret") else ""
        return CreateMachineResponse(vm.id, node, last_known_state=state)

    # ---- the others -----------------------------------------------------------------------------

    async def initialize_machine(
        self, request: InitializeMachineRequest
    ) -> InitializeMachineResponse:
        await self._await()
        vm = self._find(request.machine.metadata.name, _cluster(request.machine_class))
        if vm is None:
            if self._has("initializes nothing"):
                return InitializeMachineResponse("memory:///none", "none")
            raise DriverError(Code.NOT_FOUND, "no such VM")
        if vm.initialized and self._has("initializes once"):
            raise DriverError(Code.FAILED_PRECONDITION, "it is initialized already")
        vm.initialized = not self._has("never gets initialized")
        return InitializeMachineResponse(vm.id, vm.machine)

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        await self._await()
        machine, cluster = request.machine, _cluster(request.machine_class)
        if self._has("finds by ID only"):
            vm = self._cloud.vms.get(machine.spec.provider_id)
        else:
            vm = self._find(machine.metadata.name, cluster)
        if vm is None:
            if self._has("calls nothing internal"):
                raise DriverError(Code.INTERNAL, "no such VM")
            if self._has("finds anything"):
                return GetMachineStatusResponse("memory:///x", "x")
            raise DriverError(Code.NOT_FOUND, "no such VM")
        if self._has("touches what it looks at"):
            del self._cloud.vms[vm.id]
        if not vm.initialized:
            named = "" if self._has("names nothing") else vm.id
            raise DriverError(
                Code.UNINITIALIZED, "not initialized", provider_id=named, node_name=vm.machine
            )
        return GetMachineStatusResponse(vm.id, vm.machine)

    async def update_machine(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
        await self._await()
        if self._cloud.vms.get(request.provider_id) is None:
            if self._has("updates nothing"):
                return UpdateMachineResponse()
            raise DriverError(Code.NOT_FOUND, "no such VM")
        if request.last_applied_provider_spec is None and self._has("must know what was"):
            raise DriverError(Code.INVALID_ARGUMENT, "nobody knows what was applied")
        if request.attempted_provider_specs and self._has("never goes back"):
            raise DriverError(Code.INTERNAL, "the last update is not finished")
        return UpdateMachineResponse()

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        machine, cluster = request.machine, _cluster(request.machine_class)
        await self._await()
        vm = self._find(machine.metadata.name, cluster)
        if self._has("deletes by ID only"):
            vm = self._cloud.vms.get(machine.spec.provider_id)
        if self._has("deletes by class only") and not machine.spec.class_.name:
            vm = None
        if vm is None:
            if self._has("misses what is gone"):
                raise DriverError(Code.INTERNAL, "no such VM")
            return DeleteMachineResponse()
        if self._has("forgets halves") and vm.id in self._cloud.half_made:
            return DeleteMachineResponse()
        if self._has("deletes in two steps") and not self._cloud.half_made:
            self._cloud.half_made.add(vm.id)
            await self._await()
            self._cloud.half_made.clear()
        elif self._has("deletes in two steps"):
            return DeleteMachineResponse()
        if self._has("fights over a deletion"):
            await self._await()
            if vm.id not in self._cloud.vms:
                raise DriverError(Code.INTERNAL, "it vanished")
        if not self._has("deletes nothing"):
            self._cloud.vms.pop(vm.id, None)
        return DeleteMachineResponse()

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        await self._await()
        cluster = _cluster(request.machine_class)
        return ListMachinesResponse(
            {
                vm.id: "" if self._has("lists without names") else vm.machine
                for vm in self._cloud.vms.values()
                if vm.cluster == cluster or self._has("sees all clusters")
            }
        )

    async def get_volume_ids(self, request: GetVolumeIDsRequest) -> GetVolumeIDsResponse:
        if self._has("stumbles over volumes"):
            return GetVolumeIDsResponse(tuple(_handle(spec) for spec in request.pv_specs))
        ids = tuple(handle for spec in request.pv_specs if (handle := _handle(spec)))
        if self._has("invents volumes"):
            return GetVolumeIDsResponse((*ids, "vol-0"))
        return GetVolumeIDsResponse(ids)

    async def generate_machine_class_for_migration(
        self, request: GenerateMachineClassForMigrationRequest
    ) -> GenerateMachineClassForMigrationResponse:
        await self._await()
        spec = dict(msgspec.convert(request.provider_specific_machine_class["spec"], dict))
        if self._has("migrates anew"):
            self._cloud.made += 1
            spec["number"] = self._cloud.made
        made = msgspec.structs.replace(
            request.machine_class, provider_spec={} if self._has("migrates to nothing") else spec
        )
        if self._has("renames what it migrates"):
            metadata = msgspec.structs.replace(made.metadata, name="another")
            made = msgspec.structs.replace(made, metadata=metadata)
        return GenerateMachineClassForMigrationResponse(made)

    def _find(self, name: str, cluster: str) -> Vm | None:
        for vm in self._cloud.vms.values():
            if vm.machine == name and (vm.cluster == cluster or self._has("sees all clusters")):
                return vm
        return None


def _cluster(machine_class: MachineClass) -> str:
    return str(machine_class.provider_spec["cluster"])


def _handle(spec: object) -> str:
    csi = msgspec.convert(spec, dict[str, object]).get("csi")
    return str(csi.get("volumeHandle", "")) if isinstance(csi, dict) else ""


def _block(seconds: float) -> None:
    import threading

    threading.Event().wait(seconds)


async def _deaf(seconds: float) -> None:
    """Wait on, however often it is cancelled."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        try:
            await SystemClock().sleep(until - loop.time())
        except asyncio.CancelledError:
            continue
