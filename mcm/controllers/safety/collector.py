"""The collection of orphan VMs: one look at one class, and the deletions it leads to."""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Mapping
from typing import final

from mcm.api.machine import MACHINES, Machine, MachineClass, MachineSpec
from mcm.api.meta import ObjectMeta
from mcm.client.errors import KubeError, NotFound
from mcm.client.verbs import ObjectReader
from mcm.clock import Clock
from mcm.controllers.indexes import index_machines, machines_of_provider_id
from mcm.controllers.provider import Credentials, Provider, ProviderFailed
from mcm.controllers.runtime import DONE, Outcome
from mcm.controllers.safety.list_retries import ListRetries
from mcm.controllers.safety.orphans import (
    MOST_AT_ONCE,
    Collected,
    Unclaimed,
    Vm,
    is_claimed,
    vms_in,
)
from mcm.controllers.safety.report import OrphanReport
from mcm.controllers.safety.siblings import Siblings
from mcm.driver.codes import Code
from mcm.driver.contract import DeleteMachineRequest, ListMachinesRequest
from mcm.informers import Store

_SPREAD = 0.1
_NEXT_BATCH = 60.0
"""Seconds until the next ones are deleted, where there are more than at once."""
_PAGE = 500


@final
class OrphanCollector:
    """Looks at one class a call; ``period`` seconds lie between two looks when all is well.

    What keeps one VM from being deleted keeps no other.
    """

    def __init__(
        self,
        *,
        classes: Store[MachineClass],
        machines: Store[Machine],
        credentials: Callable[[MachineClass], Credentials],
        provider: Provider,
        reader: ObjectReader,
        report: OrphanReport,
        siblings: Siblings,
        clock: Clock,
        period: float,
        random: random_module.Random,
    ) -> None:
        self._classes = classes
        index_machines(machines)
        self._machines = machines
        self._credentials = credentials
        self._provider = provider
        self._reader = reader
        self._report = report
        self._siblings = siblings
        self._clock = clock
        self._period = period
        self._random = random
        self._unclaimed: dict[str, Unclaimed] = {}
        self._seen: dict[str, MachineClass] = {}
        self._collected = Collected()
        self._retries = ListRetries(period=period, random=random)

    def is_failing(self, key: str) -> bool:
        """Tell whether the class ``namespace/name`` could not be looked at the last time."""
        return self._retries.is_failing(key)

    async def reconcile(self, key: str) -> Outcome:
        """Look at the class ``namespace/name``."""
        class_ = self._classes.get(key)
        if class_ is None:
            return self._class_is_gone(key)
        if reason := self._why_not(class_):
            self._report.not_looked_for(class_, reason)
            return Outcome(after=self._period, reason=reason)
        try:
            listed = await self._list(class_)
        except ProviderFailed as failure:
            return self._unlisted(class_, failure)
        elsewhere = await self._siblings.claims()
        self._retries.forget(key)
        self._seen[key] = class_
        unclaimed = self._unclaimed.setdefault(key, Unclaimed())
        found = [
            vm for vm in vms_in(listed) if self._is_unclaimed(class_, vm) and not elsewhere.hold(vm)
        ]
        due = unclaimed.look(found, self._clock.monotonic())
        self._report.counted(class_, len(unclaimed.vms))
        for vm in due[:MOST_AT_ONCE]:
            if await self._collect(class_, vm):
                unclaimed.forget(vm)
                self._report.counted(class_, len(unclaimed.vms))
        if len(due) > MOST_AT_ONCE:
            return Outcome(after=_NEXT_BATCH, reason="more orphan VMs")
        next_due = unclaimed.next_due(self._clock.monotonic())
        spread = self._period * (1 - _SPREAD * self._random.random())
        return Outcome(after=min(spread, next_due or spread), reason="orphan VMs")

    def _class_is_gone(self, key: str) -> Outcome:
        """With a class goes the way to list and delete its VMs: say which were unclaimed."""
        self._retries.forget(key)
        unclaimed, class_ = self._unclaimed.pop(key, None), self._seen.pop(key, None)
        if unclaimed is not None and unclaimed.vms and class_ is not None:
            self._report.out_of_reach(class_, unclaimed.vms)
        self._report.forget(key)
        return DONE

    # ---- what is unclaimed ---------------------------------------------------------------------

    def _why_not(self, class_: MachineClass) -> str:
        """Say why nothing of the class can be collected now; empty: it can."""
        if class_.metadata.faults:
            return "the class cannot be read wholly"
        for key in self._machines.unreadable:
            machine = self._machines.get(key)
            if machine is not None and machine.metadata.faults:
                continue  # it says which VMs it may claim
            if not key or key.startswith(f"{class_.metadata.namespace}/"):
                # Any VM could be its own.
                return f"cannot read machine {key or 'without a name'}"
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
            self._report.unlisted(class_, failure.text)
        wait = self._retries.failed(key, failure.error)
        return Outcome(after=wait, reason=f"provider answered {failure.code.text}")

    def _is_unclaimed(self, class_: MachineClass, vm: Vm) -> bool:
        namespace = class_.metadata.namespace
        if self._collected.holds(vm, self._clock.monotonic()):
            return False  # it is going; other classes may list it too
        if is_claimed(vm, self._machines.get(f"{namespace}/{vm.machine_name}")):
            return False
        holders = machines_of_provider_id(self._machines, vm.provider_id)
        return all(holder.metadata.namespace != namespace for holder in holders)

    # ---- its deletion --------------------------------------------------------------------------

    async def _collect(self, class_: MachineClass, vm: Vm) -> bool:
        """Delete the VM if the API server, too, knows of nobody it belongs to."""
        if not self._is_unclaimed(class_, vm):
            return False  # claimed, or collected for another class, while others were deleted
        self._collected.add(vm, self._clock.monotonic())
        try:
            claimed = await self._is_claimed_by_now(class_, vm)
            if claimed or (await self._siblings.claims()).hold(vm):
                self._collected.discard(vm)
                return False
            await self._delete(class_, vm)
        except KubeError as error:
            return self._stays(class_, vm, f"its machine cannot be looked for: {error}")
        except ProviderFailed as failure:
            if failure.code is not Code.NOT_FOUND:
                return self._stays(class_, vm, failure.text)
        except BaseException:
            self._collected.discard(vm)
            raise
        self._report.deleted(class_, vm)
        return True

    def _stays(self, class_: MachineClass, vm: Vm, reason: str) -> bool:
        self._collected.discard(vm)
        self._report.stays(class_, vm, reason)
        return False

    async def _is_claimed_by_now(self, class_: MachineClass, vm: Vm) -> bool:
        """Ask the API server: the mirror may be behind."""
        namespace = class_.metadata.namespace
        if vm.machine_name:
            try:
                found = await self._reader.get(MACHINES, vm.machine_name, namespace=namespace)
            except NotFound:
                return False
            return is_claimed(vm, found)
        token = ""
        while True:
            page = await self._reader.list_page(
                MACHINES, namespace=namespace, limit=_PAGE, continue_token=token
            )
            if page.bad or any(m.spec.provider_id == vm.provider_id for m in page.items):
                return True
            token = page.continue_token
            if not token:
                return False

    async def _delete(self, class_: MachineClass, vm: Vm) -> None:
        stub = Machine(
            metadata=ObjectMeta(name=vm.machine_name, namespace=class_.metadata.namespace),
            spec=MachineSpec(provider_id=vm.provider_id),
        )
        request = DeleteMachineRequest(stub, class_, self._credentials(class_).data)
        await self._provider.delete(request)
