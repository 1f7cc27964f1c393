"""The calls behind ``mcm vm``: each makes one thing of a class and a machine's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

import msgspec

from mcm.api.machine import GROUP, ClassSpec, Machine, MachineClass, MachineSpec
from mcm.api.meta import ObjectMeta
from mcm.api.names import KIND_MACHINE_CLASS, LABEL_NODE
from mcm.api.patches import merge_diff
from mcm.client.errors import ConfigurationError
from mcm.controllers.machine.creation.user_data import filled
from mcm.controllers.provider import Provider, ProviderFailed
from mcm.driver import (
    Code,
    CreateMachineRequest,
    DeleteMachineRequest,
    GetMachineStatusRequest,
    InitializeMachineRequest,
    ListMachinesRequest,
    UpdateMachineRequest,
)


@final
@dataclass(frozen=True, slots=True)
class Found:
    """A VM as the provider tells of it. ``initialized``: False if that is still to be done."""

    machine: str
    provider_id: str
    node_name: str
    initialized: bool = True


@final
@dataclass(frozen=True, slots=True)
class VmCalls:
    """Calls for one class. All raise :class:`ProviderFailed`, whose text is fit to be shown."""

    provider: Provider
    machine_class: MachineClass
    secret: Mapping[str, bytes] = field(repr=False)

    def machine(self, name: str, provider_id: str = "") -> Machine:
        class_ = self.machine_class.metadata
        return Machine(
            metadata=ObjectMeta(name=name, namespace=class_.namespace or "default"),
            spec=MachineSpec(
                class_=ClassSpec(api_group=GROUP, kind=KIND_MACHINE_CLASS, name=class_.name),
                provider_id=provider_id,
            ),
        )

    async def create(self, name: str) -> Found:
        """Create or adopt the VM; it is not initialized yet."""
        machine = self.machine(name)
        data = filled(self.secret, machine_name=name, token=None)
        made = await self.provider.create(CreateMachineRequest(machine, self.machine_class, data))
        return Found(name, made.provider_id, made.node_name, initialized=False)

    async def initialize(self, found: Found) -> Found:
        """Initialize it; a provider that has no such verb has nothing to initialize."""
        machine = self.machine(found.machine, found.provider_id)
        labels = {LABEL_NODE: found.node_name} if found.node_name else {}
        metadata = msgspec.structs.replace(machine.metadata, labels=labels)
        machine = msgspec.structs.replace(machine, metadata=metadata)
        request = InitializeMachineRequest(machine, self.machine_class, self.secret)
        try:
            done = await self.provider.initialize(request)
        except ProviderFailed as failure:
            if failure.code is not Code.UNIMPLEMENTED:
                raise
            return Found(found.machine, found.provider_id, found.node_name)
        return Found(
            found.machine,
            found.provider_id or done.provider_id,
            found.node_name or done.node_name,
        )

    async def status(self, name: str, provider_id: str = "") -> Found:
        """Find the VM; an uninitialized one is found as well."""
        machine = self.machine(name, provider_id)
        request = GetMachineStatusRequest(machine, self.machine_class, self.secret)
        try:
            answer = await self.provider.status(request)
        except ProviderFailed as failure:
            if failure.code is not Code.UNINITIALIZED or failure.error is None:
                raise
            named = failure.error.provider_id or provider_id
            return Found(name, named, failure.error.node_name, initialized=False)
        return Found(name, answer.provider_id, answer.node_name)

    async def delete(self, name: str, provider_id: str = "") -> None:
        """Delete the VM; one that is not there is deleted already."""
        machine = self.machine(name, provider_id)
        request = DeleteMachineRequest(machine, self.machine_class, self.secret)
        try:
            await self.provider.delete(request)
        except ProviderFailed as failure:
            if failure.code is not Code.NOT_FOUND:
                raise

    async def name_of(self, provider_id: str) -> str:
        """Return the machine name of a VM of which only the provider ID is known.

        Raises ConfigurationError if the provider lists no such VM.
        """
        name = (await self.list()).get(provider_id, "")
        if not name:
            raise ConfigurationError(
                f"the class has no VM {provider_id} with a machine's name: give --machinename"
            )
        return name

    async def list(self) -> Mapping[str, str]:
        """Return the class's VMs: provider IDs with machine names."""
        request = ListMachinesRequest(self.machine_class, self.secret)
        return (await self.provider.list(request)).machines

    async def update(
        self, name: str, provider_id: str = "", last_applied: MachineClass | None = None
    ) -> Found:
        """Bring the VM to what the class says now."""
        found = Found(name, provider_id, "") if provider_id else await self.status(name)
        machine = self.machine(name, found.provider_id)
        await self.provider.update(
            UpdateMachineRequest(
                machine,
                self.machine_class,
                self.secret,
                provider_id=found.provider_id,
                last_applied_provider_spec=last_applied.provider_spec if last_applied else None,
            )
        )
        return found

    def changed_since(self, last_applied: MachineClass | None) -> tuple[str, ...] | None:
        """Return the fields of the provider spec that differ; None if the former is unknown."""
        if last_applied is None:
            return None
        before, now = last_applied.provider_spec, self.machine_class.provider_spec
        return tuple(sorted(_paths(merge_diff(before, now) or {})))


def _paths(difference: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for key, value in difference.items():
        if isinstance(value, Mapping) and value:
            yield from _paths(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
