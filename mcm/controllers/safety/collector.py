"""The collection of orphan VMs: one look at one class, and the deletions it leads to."""

from __future__ import annotations

import logging
import random as random_module
from collections.abc import Callable, Mapping
from typing import final

from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine, MachineClass, MachineSpec
from mcm.api.meta import ObjectMeta
from mcm.client.errors import NotFound
from mcm.client.verbs import ObjectReader
from mcm.clock import Clock
from mcm.controllers.provider import Credentials, Provider, ProviderFailed
from mcm.controllers.runtime import DONE, Outcome
from mcm.controllers.safety.list_retries import ListRetries
from mcm.controllers.safety.orphans import Unclaimed, Vm, is_claimed, vms_in
from mcm.driver.codes import Code
from mcm.driver.contract import DeleteMachineRequest, ListMachinesRequest
from mcm.events import EventSink, EventType
from mcm.informers import Store

logger = logging.getLogger(__name__)

_SPREAD = 0.1


@final
class OrphanCollector:
    """Looks at one class a call; ``period`` seconds lie between two looks when all is well."""

    def __init__(
        self,
        *,
        classes: Store[MachineClass],
        machines: Store[Machine],
        credentials: Callable[[MachineClass], Credentials],
        provider: Provider,
        reader: ObjectReader,
        events: EventSink,
        clock: Clock,
        period: float,
        random: random_module.Random,
    ) -> None:
        self._classes = classes
        self._machines = machines
        self._credentials = credentials
        self._provider = provider
        self._reader = reader
        self._events = events
        self._clock = clock
        self._period = period
        self._random = random
        self._unclaimed: dict[str, Unclaimed] = {}
        self._retries = ListRetries(period=period, random=random)

    def is_failing(self, key: str) -> bool:
        """Tell whether the class ``namespace/name`` could not be looked at the last time."""
        return self._retries.is_failing(key)

    async def reconcile(self, key: str) -> Outcome:
        """Look at the class ``namespace/name``."""
        class_ = self._classes.get(key)
        if class_ is None:
            self._unclaimed.pop(key, None)
            self._retries.forget(key)
            return DONE
        if opaque := self._unreadable_in(class_.metadata.namespace):
            return Outcome(after=self._period, reason=f"cannot read machine {opaque}")
        try:
            listed = await self._list(class_)
        except ProviderFailed as failure:
            return self._unlisted(class_, failure)
        self._retries.forget(key)
        unclaimed = self._unclaimed.setdefault(key, Unclaimed())
        found = [vm for vm in vms_in(listed) if self._is_unclaimed(class_, vm)]
        for vm in unclaimed.look(found, self._clock.monotonic()):
            if await self._collect(class_, vm):
                unclaimed.forget(vm)
        due = unclaimed.next_due(self._clock.monotonic())
        spread = self._period * (1 - _SPREAD * self._random.random())
        return Outcome(after=min(spread, due or spread), reason="orphan VMs")

    def _unreadable_in(self, namespace: str) -> str:
        """Name a machine there of which nothing new can be read: any VM could be its own. One that
        can be read in part says which VMs it may claim."""
        for key in self._machines.unreadable:
            machine = self._machines.get(key)
            if machine is not None and machine.metadata.faults:
                continue
            if not key or key.startswith(f"{namespace}/"):
                return key or "without a name"
        return ""

    async def _list(self, class_: MachineClass) -> Mapping[str, str]:
        request = ListMachinesRequest(class_, self._credentials(class_).data)
        return (await self._provider.list(request)).machines

    def _unlisted(self, class_: MachineClass, failure: ProviderFailed) -> Outcome:
        """Only what was found unclaimed again and again counts: what was known stays as it is."""
        key = class_.metadata.key
        if failure.error is not None and failure.code is Code.UNIMPLEMENTED:
            self._retries.forget(key)
            return Outcome(after=self._period, reason="the provider lists nothing")
        if not self._retries.is_failing(key):
            self._tell(class_, "OrphanVMsUnknown", f"VMs cannot be listed: {failure.text}")
        wait = self._retries.failed(key, failure.error)
        return Outcome(after=wait, reason=f"provider answered {failure.code.text}")

    def _is_unclaimed(self, class_: MachineClass, vm: Vm) -> bool:
        namespace = class_.metadata.namespace
        if not vm.machine_name:
            return False  # nobody could confirm that it belongs to no machine
        if is_claimed(vm, self._machines.get(f"{namespace}/{vm.machine_name}")):
            return False
        recorded = (m.spec.provider_id for m in self._machines.list(namespace))
        return vm.provider_id not in recorded

    async def _collect(self, class_: MachineClass, vm: Vm) -> bool:
        """Delete the VM if the API server, too, knows of nobody it belongs to."""
        namespace = class_.metadata.namespace
        if is_claimed(vm, await self._live(namespace, vm.machine_name)):
            return False
        stub = Machine(
            metadata=ObjectMeta(name=vm.machine_name, namespace=namespace),
            spec=MachineSpec(provider_id=vm.provider_id),
        )
        request = DeleteMachineRequest(stub, class_, self._credentials(class_).data)
        try:
            await self._provider.delete(request)
        except ProviderFailed as failure:
            if failure.code is not Code.NOT_FOUND:
                self._tell(class_, "OrphanVMStays", f"{_name(vm)}: {failure.text}")
                return False
        self._tell(class_, "OrphanVMDeleted", f"{_name(vm)} belonged to no machine")
        return True

    async def _live(self, namespace: str, name: str) -> Machine | None:
        try:
            return await self._reader.get(MACHINES, name, namespace=namespace)
        except NotFound:
            return None

    def _tell(self, class_: MachineClass, reason: str, note: str) -> None:
        logger.warning("orphan VMs", extra={"reason": reason, "note": note})
        self._events.event(MACHINE_CLASSES, class_, EventType.WARNING, reason, note)


def _name(vm: Vm) -> str:
    return f"VM {vm.provider_id} (machine name {vm.machine_name})"
