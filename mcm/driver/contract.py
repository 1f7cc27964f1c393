"""The provider contract: eight verbs between the machine controller and a cloud.

Rules that hold for every verb:

* It is a coroutine on the controller's event loop. Blocking SDKs belong in a thread.
* It is called only while this process leads, and cancelled as soon as it does not, when the process
  stops, and after 15 minutes. It must then end at once (within 3 seconds): ``CancelledError`` is
  for cleaning up, never to be swallowed, and never to be raised by itself. A call that still runs
  blocks every further one for the same machine.
* It may be cancelled at any await, and may be called again with the same arguments after a crash or
  by the next leader, who knows nothing of the first call: it must be idempotent, with the machine's
  name (or its provider ID) as the identity of the VM.
* It returns the response of its verb, whole: None or anything else is an error on the machine.
* It raises :class:`mcm.driver.errors.DriverError`. Any other exception is taken as an unknown error
  that time will not heal, unless its text is the text form of a ``DriverError``
  or it is a ``TimeoutError``.
* It acts only on VMs of its own cluster, as told by the class's ``provider_spec``.
* Requests are frozen and their objects shared with the controllers' stores: nothing in them may be
  changed. Secrets hide from ``repr``; they must not get into logs or ``last_known_state``. In the
  texts of errors their values are masked, as a second line of defence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mcm.api.core import NodeAddress
from mcm.api.machine import ClassSpec, Machine, MachineClass
from mcm.api.meta import JSONObject
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError


@dataclass(frozen=True, slots=True)
class CreateMachineRequest:
    """``secret`` has the placeholders of its ``userData`` already filled in."""

    machine: Machine
    machine_class: MachineClass
    secret: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CreateMachineResponse:
    """``provider_id`` is never empty; ``node_name`` (the name the kubelet will register) only where
    there is no target cluster. ``addresses`` matter only there."""

    provider_id: str
    node_name: str
    last_known_state: str = ""
    addresses: tuple[NodeAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class InitializeMachineRequest:
    """``machine`` already has the provider ID and the ``node`` label if they could be stored."""

    machine: Machine
    machine_class: MachineClass
    secret: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class InitializeMachineResponse:
    provider_id: str
    node_name: str
    addresses: tuple[NodeAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateMachineRequest:
    """Bring the VM ``provider_id`` to what ``machine_class.provider_spec`` says now.

    ``last_applied_provider_spec`` is what the VM was made with or last brought to, None if nobody
    knows. ``attempted_provider_specs``, the oldest first, are those that were tried since and may
    have been applied in part: updates that failed or were cut short before the class was changed
    again. What any of these has and the class has no more is to be taken off the VM, its
    interfaces and disks; whatever else is found there was put there by somebody else and stays.
    """

    machine: Machine
    machine_class: MachineClass
    secret: Mapping[str, bytes] = field(repr=False)
    provider_id: str
    last_applied_provider_spec: JSONObject | None = None
    attempted_provider_specs: tuple[JSONObject, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateMachineResponse:
    """All of it is as the class says."""


@dataclass(frozen=True, slots=True)
class DeleteMachineRequest:
    """``machine`` may be a stub with no more than name, namespace and provider ID (an orphan)."""

    machine: Machine
    machine_class: MachineClass
    secret: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeleteMachineResponse:
    last_known_state: str = ""


@dataclass(frozen=True, slots=True)
class GetMachineStatusRequest:
    machine: Machine
    machine_class: MachineClass
    secret: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class GetMachineStatusResponse:
    """The VM exists and needs no initialisation."""

    provider_id: str
    node_name: str
    addresses: tuple[NodeAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class ListMachinesRequest:
    machine_class: MachineClass
    secret: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ListMachinesResponse:
    """Provider ID to machine name, for every VM the class may have created in this cluster."""

    machines: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GetVolumeIDsRequest:
    """``spec`` of PersistentVolumes, as the API server sent them."""

    pv_specs: tuple[JSONObject, ...]


@dataclass(frozen=True, slots=True)
class GetVolumeIDsResponse:
    """IDs as they occur in a Node's ``status.volumesAttached``: whole names, or their last segment;
    unknown volumes are left out."""

    volume_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GenerateMachineClassForMigrationRequest:
    """``provider_specific_machine_class`` is the old class as the API server sent it, of the kind
    that ``class_spec`` names. ``machine_class`` has name, namespace, labels and annotations of the
    new one, and nothing else yet."""

    provider_specific_machine_class: JSONObject = field(repr=False)
    machine_class: MachineClass
    class_spec: ClassSpec


@dataclass(frozen=True, slots=True)
class GenerateMachineClassForMigrationResponse:
    """The request's ``machine_class``, filled in; its metadata stays as it was given."""

    machine_class: MachineClass


class Driver(Protocol):
    """A cloud, as the controllers see it. Derive from :class:`UnsupportedDriver` to be spared the
    optional verbs."""

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        """Create the machine's VM and whatever it needs, or adopt the one that exists.

        Return as soon as the VM is certain to exist; its boot is not waited for.
        ``ALREADY_EXISTS`` means that a VM of this name exists and differs; ``RESOURCE_EXHAUSTED``
        that quota or capacity is used up, and is tried again more slowly than anything else.
        """
        ...

    async def initialize_machine(
        self, request: InitializeMachineRequest
    ) -> InitializeMachineResponse:
        """Finish what can only be done once the VM exists. Optional: ``UNIMPLEMENTED`` skips it.

        ``UNINITIALIZED`` asks to be called again.
        """
        ...

    async def update_machine(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
        """Change what can be changed on a VM that runs, as tags. Optional; ``UNIMPLEMENTED``: the
        class's changes reach new machines only.

        Called when the ``provider_spec`` of a machine's class changed under the same name, again
        after each failure, and once for a VM of which nobody knows what was applied; cancelled
        after 2 minutes, since as long as it takes nobody looks at the machine's health. Any error
        means that the update may have been applied in part. A change that needs a new VM is an
        ``INVALID_ARGUMENT``, told before anything is touched.
        """
        ...

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        """Delete the VM and *all* that was created with it (interfaces, disks, addresses).

        Success means that nothing is left that costs money. A VM that does not exist is a success
        (``NOT_FOUND`` is accepted too), and what remains of it must be deleted all the same.
        """
        ...

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        """Tell whether the machine's VM exists; read-only. Optional, yet worth having.

        ``NOT_FOUND``: it certainly does not, so one may be created. ``UNINITIALIZED``: it does, and
        :meth:`initialize_machine` is due; the error carries ``provider_id`` and ``node_name``.
        """
        ...

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        """List the class's VMs, for the collection of orphans. Optional.

        A VM listed here that no machine knows *will be deleted*: filter by cluster.
        """
        ...

    async def get_volume_ids(self, request: GetVolumeIDsRequest) -> GetVolumeIDsResponse:
        """Translate PersistentVolume specs to volume IDs. Optional; needs no cloud call.

        Asked, one volume at a time, for those whose name in a Node's status follows from no rule of
        Kubernetes: not for volumes of CSI drivers, nor of plugins that became such. A drain waits
        5 seconds for all answers together. An ID means the name that equals it, or ends in it after
        a ``^`` or ``/``: ``vol-1`` is not ``vol-10``.
        """
        ...

    async def generate_machine_class_for_migration(
        self, request: GenerateMachineClassForMigrationRequest
    ) -> GenerateMachineClassForMigrationResponse:
        """Make a MachineClass of a class of the kind this provider had before. Optional; needs no
        cloud call.

        The new class is stored, the old one marked and whoever refers to it led over by the caller.
        """
        ...


class UnsupportedDriver:
    """Answers every optional verb with ``UNIMPLEMENTED``: a base to build a driver on."""

    async def initialize_machine(
        self, request: InitializeMachineRequest
    ) -> InitializeMachineResponse:
        raise _unimplemented("InitializeMachine")

    async def update_machine(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
        raise _unimplemented("UpdateMachine")

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        raise _unimplemented("GetMachineStatus")

    async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
        raise _unimplemented("ListMachines")

    async def get_volume_ids(self, request: GetVolumeIDsRequest) -> GetVolumeIDsResponse:
        raise _unimplemented("GetVolumeIDs")

    async def generate_machine_class_for_migration(
        self, request: GenerateMachineClassForMigrationRequest
    ) -> GenerateMachineClassForMigrationResponse:
        raise _unimplemented("GenerateMachineClassForMigration")


def _unimplemented(verb: str) -> DriverError:
    return DriverError(Code.UNIMPLEMENTED, f"the provider does not implement {verb}")
