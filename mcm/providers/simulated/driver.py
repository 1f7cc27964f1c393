"""The driver of the simulated cloud: machine verbs as writes of VirtualMachine objects."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import final

from mcm.api.core import NodeAddress
from mcm.api.machine import MachineClass
from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.errors import (
    AlreadyExists,
    ApiError,
    ConfigurationError,
    KubeError,
    NotFound,
    TransportError,
)
from mcm.clock import Clock
from mcm.driver.cloud_api import CloudApi
from mcm.driver.codes import Code
from mcm.driver.contract import (
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
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
from mcm.driver.discovery import ProviderContext
from mcm.driver.errors import DriverError
from mcm.driver.services import Service
from mcm.providers.simulated.cloud import SimulatedCloud
from mcm.providers.simulated.provider_spec import ProviderSpec, decode
from mcm.providers.simulated.tags import tag_changes
from mcm.providers.simulated.virtual_machine import (
    TAGGED,
    VIRTUAL_MACHINES,
    VirtualMachine,
    VirtualMachineSpec,
    crd_manifest,
    name_of,
)
from mcm.rate_limited_log import RateLimitedLog

logger = logging.getLogger(__name__)

_SEEN_WITHIN = timedelta(minutes=1)
"""How soon the cloud has noted of a VM that it boots it."""
_LABEL_CLASS = "simulation.machine.sapcloud.io/machine-class"
_ANNOTATION_INITIALIZED = "simulation.machine.sapcloud.io/initialized"


def provider(context: ProviderContext) -> Driver:
    """Entry point ``simulated``. Raises ConfigurationError for a cloud without a target cluster."""
    if not context.simulate_cloud:
        logger.info(
            "VMs of the simulated provider boot where its cloud runs: in the sandbox, or in a "
            "process with --simulate-cloud; this one does not run it"
        )
    return SimulatedDriver(
        context.control,
        namespace=context.namespace,
        clock=context.clock,
        randomness=context.random,
        services={"cloud": _cloud(context).run} if context.simulate_cloud else {},
        cloud_api=context.cloud_api,
    )


def _cloud(context: ProviderContext) -> SimulatedCloud:
    if context.target is None:
        raise ConfigurationError("--simulate-cloud: needs a target cluster for its VMs to join")
    return SimulatedCloud(
        context.control,
        context.target,
        namespace=context.namespace,
        clock=context.clock,
        randomness=context.random,
    )


@final
class SimulatedDriver(UnsupportedDriver):
    """A VM carries its machine's name, and its Node will too.

    Failures are drawn before anything is done, so a failed call never leaves a VM behind.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        clock: Clock,
        randomness: random.Random,
        services: Mapping[str, Service] | None = None,
        cloud_api: CloudApi | None = None,
    ) -> None:
        self._client = client
        self._cloud_api = cloud_api or CloudApi()
        self._services = dict(services or {})
        self._namespace = namespace
        self._clock = clock
        self._random = randomness
        self._calls: Counter[tuple[str, str]] = Counter()
        self._quota_lock = asyncio.Lock()
        self._seldom = RateLimitedLog(logger, clock)

    def definitions(self) -> Sequence[JSONObject]:
        return [crd_manifest()]

    def services(self) -> Mapping[str, Service]:
        return self._services

    def check_provider_spec(self, machine_class: MachineClass) -> Iterable[str]:
        """Say what is wrong with the class, as every verb would."""
        try:
            decode(machine_class.provider_spec)
        except DriverError as error:
            yield error.message.removeprefix("providerSpec: ")

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        spec = decode(request.machine_class.provider_spec)
        name = request.machine.metadata.name
        await self._begin("create", name, spec)
        if spec.quota:
            # Between count and creation nobody else may create, or both would pass.
            async with self._quota_lock:
                await self._check_quota(request.machine_class, spec, name)
                vm = await self._create(request, spec)
        else:
            vm = await self._create(request, spec)
        return CreateMachineResponse(
            provider_id=vm.provider_id, node_name=vm.spec.node_name, addresses=_addresses(vm)
        )

    async def initialize_machine(
        self, request: InitializeMachineRequest
    ) -> InitializeMachineResponse:
        spec = decode(request.machine_class.provider_spec)
        name = request.machine.metadata.name
        await self._begin("initialize", name, spec)
        vm = await self._find(name)
        if spec.needs_initialization and not _initialized(vm):
            initialized = {"annotations": {_ANNOTATION_INITIALIZED: "true"}}
            vm = await self._patch(name, {"metadata": initialized})
        return InitializeMachineResponse(
            provider_id=vm.provider_id, node_name=vm.spec.node_name, addresses=_addresses(vm)
        )

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        spec = decode(request.machine_class.provider_spec)
        await self._begin("status", request.machine.metadata.name, spec)
        vm = await self._find(request.machine.metadata.name)
        if spec.needs_initialization and not _initialized(vm):
            raise DriverError(
                Code.UNINITIALIZED,
                f"VM {vm.metadata.name} is not initialized",
                provider_id=vm.provider_id,
                node_name=vm.spec.node_name,
            )
        return GetMachineStatusResponse(
            provider_id=vm.provider_id, node_name=vm.spec.node_name, addresses=_addresses(vm)
        )

    async def update_machine(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
        """Bring the tags up to the class: those of the VM, then its interface's, then its disk's.

        Each is a request of its own, so that an update can fail half-way. A VM that was given
        another class meanwhile keeps what it was made with.
        """
        spec = decode(request.machine_class.provider_spec)
        before = tuple(map(_leniently, _known_specs(request)))
        name = name_of(request.provider_id, self._namespace) or request.machine.metadata.name
        await self._begin("update", name, spec)
        vm = await self._find(name)
        if vm.spec.machine_class == request.machine_class.metadata.name:
            _refuse_what_needs_a_new_vm(spec, request.last_applied_provider_spec)
        for resource in TAGGED:
            self._fail_if_asked("update", name, spec, at=resource)
            known = tuple(s.tags.of(resource) for s in before)
            changes = tag_changes(vm.spec.tags.get(resource, {}), spec.tags.of(resource), known)
            if changes:
                await self._patch(name, {"spec": {"tags": {resource: changes}}})
        return UpdateMachineResponse()

    async def _patch(self, name: str, patch: dict[str, object]) -> VirtualMachine:
        try:
            return await self._client.patch(
                VIRTUAL_MACHINES, name, patch, namespace=self._namespace
            )
        except NotFound as error:
            raise DriverError(Code.NOT_FOUND, f"no VM named {name}") from error
        except KubeError as error:
            raise _unavailable(error) from error

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        spec = _decode_leniently(request.machine_class)
        machine = request.machine
        # An orphan's stub may carry only the provider ID.
        name = name_of(machine.spec.provider_id, self._namespace) or machine.metadata.name
        await self._begin("delete", name, spec)
        try:
            await self._client.delete(VIRTUAL_MACHINES, name, namespace=self._namespace)
        except NotFound:
            return DeleteMachineResponse()
        except KubeError as error:
            raise _unavailable(error) from error
        self._forget(name)
        return DeleteMachineResponse()

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        spec = decode(request.machine_class.provider_spec)
        await self._begin("list", request.machine_class.metadata.name, spec)
        vms = await self._vms_of(request.machine_class)
        self._tell_of_idle_cloud(vms)
        return ListMachinesResponse({vm.provider_id: vm.spec.machine_name for vm in vms})

    def _tell_of_idle_cloud(self, vms: Iterable[VirtualMachine]) -> None:
        """Warn of VMs that nobody boots: a cloud that runs notes at once that it does."""
        latest = self._clock.now() - _SEEN_WITHIN
        waiting = [
            vm.metadata.name
            for vm in vms
            if not vm.status.phase and (made := vm.metadata.creation_timestamp) and made < latest
        ]
        if waiting:
            self._seldom.tell(
                "VMs that nobody boots",
                "nobody runs the simulated cloud, so that VMs are not booted "
                f"({len(waiting)}, such as {waiting[0]}); run a manager with --simulate-cloud",
            )

    async def get_volume_ids(self, request: GetVolumeIDsRequest) -> GetVolumeIDsResponse:
        ids = []
        for spec in request.pv_specs:
            csi = spec.get("csi")
            if isinstance(csi, dict) and csi.get("volumeHandle"):
                ids.append(str(csi["volumeHandle"]))
        return GetVolumeIDsResponse(tuple(ids))

    async def _begin(self, verb: str, name: str, spec: ProviderSpec) -> None:
        """Let the verb's latency pass, then fail if the class asks for it."""
        with self._cloud_api.request("virtualmachines"):
            delay = spec.delay(verb).total_seconds()
            if delay:
                await self._clock.sleep(delay)
            self._calls[verb, name] += 1
            self._fail_if_asked(verb, name, spec)

    def _fail_if_asked(self, verb: str, name: str, spec: ProviderSpec, *, at: str = "") -> None:
        for failure in spec.failures:
            if (failure.verb, failure.at) != (verb, at):
                continue
            due = self._calls[verb, name] <= failure.times
            if due or (failure.probability and self._random.random() < failure.probability):
                raise DriverError(Code.from_text(failure.code), failure.message)

    async def _create(self, request: CreateMachineRequest, spec: ProviderSpec) -> VirtualMachine:
        try:
            return await self._client.create(
                VIRTUAL_MACHINES,
                _manifest(request, spec, namespace=self._namespace),
                namespace=self._namespace,
            )
        except AlreadyExists:
            return await self._find(request.machine.metadata.name)
        except KubeError as error:
            raise _unavailable(error) from error

    async def _check_quota(
        self, machine_class: MachineClass, spec: ProviderSpec, name: str
    ) -> None:
        """A VM that a repeated call finds in place needs no room."""
        names = {vm.metadata.name for vm in await self._vms_of(machine_class)}
        if name not in names and len(names) >= spec.quota:
            raise DriverError(
                Code.RESOURCE_EXHAUSTED,
                f"quota of {spec.quota} VMs for class {machine_class.metadata.name} is used up",
            )

    async def _vms_of(self, machine_class: MachineClass) -> tuple[VirtualMachine, ...]:
        try:
            page = await self._client.list_page(
                VIRTUAL_MACHINES,
                namespace=self._namespace,
                label_selector=f"{_LABEL_CLASS}={machine_class.metadata.name}",
            )
        except KubeError as error:
            raise _unavailable(error) from error
        return page.items

    async def _find(self, name: str) -> VirtualMachine:
        try:
            return await self._client.get(VIRTUAL_MACHINES, name, namespace=self._namespace)
        except NotFound as error:
            raise DriverError(Code.NOT_FOUND, f"no VM named {name}") from error
        except KubeError as error:
            raise _unavailable(error) from error

    def _forget(self, name: str) -> None:
        for key in [k for k in self._calls if k[1] == name]:
            del self._calls[key]


def _decode_leniently(machine_class: MachineClass) -> ProviderSpec:
    """A class spoilt after its VMs were made must not keep them from going."""
    return _leniently(machine_class.provider_spec)


def _leniently(provider_spec: JSONObject) -> ProviderSpec:
    """Decode; what is invalid was never applied to anything."""
    try:
        return decode(provider_spec)
    except DriverError:
        return ProviderSpec()


def _known_specs(request: UpdateMachineRequest) -> tuple[JSONObject, ...]:
    last = request.last_applied_provider_spec
    return (*(() if last is None else (last,)), *request.attempted_provider_specs)


def _refuse_what_needs_a_new_vm(spec: ProviderSpec, last_applied: JSONObject | None) -> None:
    """Where it is not known what the VM was made with, there is nothing to compare."""
    if last_applied is None:
        return
    fields = spec.needs_new_vm(_leniently(last_applied))
    if fields:
        raise DriverError(
            Code.INVALID_ARGUMENT,
            f"providerSpec: {', '.join(fields)} cannot be changed on a VM that exists: change "
            "tags only, or make a class of another name and roll the machines over to it",
        )


def _manifest(
    request: CreateMachineRequest, spec: ProviderSpec, *, namespace: str
) -> dict[str, object]:
    machine, machine_class = request.machine, request.machine_class
    template = machine_class.node_template
    vm_spec = VirtualMachineSpec(
        machine_name=machine.metadata.name,
        machine_class=machine_class.metadata.name,
        node_name=machine.metadata.name,
        boot_latency=spec.boot_latency,
        join_latency=spec.join_latency,
        joins=spec.joins,
        instance_type=template.instance_type if template else "",
        region=template.region if template else "",
        zone=template.zone if template else "",
        capacity={k: str(v) for k, v in template.capacity.items()} if template else {},
        node_labels=spec.node_labels,
        node_conditions=spec.node_conditions,
        tags={resource: tags for resource in TAGGED if (tags := spec.tags.of(resource))},
    )
    return {
        "metadata": {
            "name": machine.metadata.name,
            "namespace": namespace,
            "labels": {_LABEL_CLASS: machine_class.metadata.name},
        },
        "spec": vm_spec,
    }


def _addresses(vm: VirtualMachine) -> tuple[NodeAddress, ...]:
    return (NodeAddress(type="Hostname", address=vm.spec.node_name),)


def _initialized(vm: VirtualMachine) -> bool:
    return _ANNOTATION_INITIALIZED in vm.metadata.annotations


def _unavailable(error: KubeError) -> DriverError:
    """The cloud's API is the API server: what ails it is the cloud's trouble."""
    if isinstance(error, NotFound):
        return DriverError(
            Code.FAILED_PRECONDITION,
            "the cluster has no VirtualMachine kind: install it with "
            "`mcm crds --provider simulated | kubectl apply -f -`",
        )
    if isinstance(error, TransportError) or (isinstance(error, ApiError) and error.code >= 500):
        return DriverError(Code.UNAVAILABLE, str(error))
    return DriverError(Code.INTERNAL, str(error))
