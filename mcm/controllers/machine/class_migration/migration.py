"""Has the provider make a MachineClass of a class of an older kind, and leads all users to it.

Each step finds what an earlier attempt left: the new class, users led over, the mark on the old
one. The machines come last, as it is for them that the work is begun again.
"""

from __future__ import annotations

import random as random_module
from contextlib import suppress
from dataclasses import dataclass
from typing import final

import msgspec

from mcm.api.machine import MACHINE_CLASSES, Machine, MachineClass
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import ANNOTATION_KUBECTL_LAST_APPLIED, STATUS_FALSE
from mcm.api.validation import describe, validate_machine_class
from mcm.client.errors import AlreadyExists, Forbidden, NotFound
from mcm.controllers.machine.backoff import LASTING, TRANSIENT
from mcm.controllers.machine.class_migration.older_class import (
    OlderClass,
    metadata_of,
    migrated_patch,
    older_class_of,
    read,
)
from mcm.controllers.machine.class_migration.references import References
from mcm.controllers.machine.own_conditions import OwnCondition, with_own, without_own
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.provider import Provider, ProviderFailed
from mcm.controllers.runtime import DONE, Outcome
from mcm.driver.codes import Code
from mcm.driver.contract import GenerateMachineClassForMigrationRequest
from mcm.events import EventType

_A_MOMENT = 1.0
"""Seconds until to look again whether another machine's pass has had the class migrated."""


@final
class _Unmigrated(Exception):
    """The class cannot be migrated now. ``soon``: time may change that."""

    def __init__(self, text: str, code: Code, *, soon: bool) -> None:
        self.text = text
        self.code = code
        self.soon = soon
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class _Failure:
    cause: _Unmigrated
    count: int
    retry_at: float


@final
class ClassMigration:
    """The step MIGRATE_CLASS. One attempt at a time for each class, however many machines name it;
    failures are remembered for all of them."""

    def __init__(
        self,
        control: ControlCluster,
        references: References,
        *,
        provider: Provider,
        random: random_module.Random,
    ) -> None:
        self._control = control
        self._references = references
        self._provider = provider
        self._random = random
        self._under_way: set[OlderClass] = set()
        self._failures: dict[OlderClass, _Failure] = {}

    async def migrate(self, machine: Machine) -> Outcome:
        """Lead ``machine``, and whoever names the same class, to a MachineClass of that name."""
        older = older_class_of(machine)
        if older is None:
            return await self._done(machine)
        known, now = self._failures.get(older), self._control.clock.monotonic()
        if known is not None and known.retry_at > now:
            await self._show(machine, known.cause)
            return Outcome(after=known.retry_at - now, reason=f"{older} cannot be migrated")
        if older in self._under_way:
            return Outcome(after=_A_MOMENT, reason=f"{older} is being migrated")
        self._under_way.add(older)
        try:
            await self._bring_over(older)
        except _Unmigrated as cause:
            await self._show(machine, cause)
            return Outcome(after=self._failed(older, cause), reason=f"{older} cannot be migrated")
        finally:
            self._under_way.discard(older)
        self._failures.pop(older, None)
        return await self._done(self._control.current(machine) or machine)

    async def _bring_over(self, older: OlderClass) -> None:
        control = self._control
        stored = await self._read(older)
        meta = metadata_of(stored)
        if control.classes.get(f"{older.namespace}/{older.name}") is None:
            class_ = await self._generated(older, stored, meta)
            with suppress(AlreadyExists):
                await control.writer.create(MACHINE_CLASSES, class_, namespace=older.namespace)
        await self._references.lead_templates_over(older)
        if (patch := migrated_patch(older, meta)) is not None:
            await control.writer.patch(older.resource, older.name, patch, namespace=older.namespace)
        await self._references.lead_machines_over(older)

    async def _read(self, older: OlderClass) -> JSONObject:
        try:
            return await read(self._control.client, older)
        except NotFound:
            text = f"{older} does not exist: name a MachineClass in spec.class"
            raise _Unmigrated(text, Code.NOT_FOUND, soon=False) from None
        except Forbidden as error:
            text = f"{older} may not be read: {error}"
            raise _Unmigrated(text, Code.PERMISSION_DENIED, soon=False) from None

    async def _generated(
        self, older: OlderClass, stored: JSONObject, meta: ObjectMeta
    ) -> MachineClass:
        empty = MachineClass(metadata=_successor_of(meta))
        request = GenerateMachineClassForMigrationRequest(stored, empty, older.class_spec)
        try:
            response = await self._provider.generate_class(request)
        except ProviderFailed as failure:
            text = f"{older} cannot be migrated: {failure.text}"
            # INTERNAL is to be tried again by itself; an operation that is not there is not.
            soon = failure.error is not None and (
                failure.code.transient or failure.code is Code.INTERNAL
            )
            raise _Unmigrated(text, failure.code, soon=soon) from failure
        class_ = msgspec.structs.replace(response.machine_class, metadata=empty.metadata)
        if errors := validate_machine_class(class_):
            text = f"{older} cannot be migrated: what the provider made of it is invalid: "
            raise _Unmigrated(text + describe(errors), Code.INTERNAL, soon=False)
        return class_

    def _failed(self, older: OlderClass, cause: _Unmigrated) -> float:
        before = self._failures.get(older)
        count = before.count + 1 if before and before.cause.soon == cause.soon else 1
        pace = TRANSIENT if cause.soon else LASTING
        wait = pace.delay(count - 1, self._random.random())
        self._failures[older] = _Failure(cause, count, self._control.clock.monotonic() + wait)
        return wait

    async def _show(self, machine: Machine, cause: _Unmigrated) -> None:
        control = self._control
        wanted = with_own(
            machine.status,
            OwnCondition.CLASS_MIGRATED,
            STATUS_FALSE,
            cause.code.text,
            cause.text,
            control.now(),
        )
        if wanted is not machine.status:
            control.tell(machine, EventType.WARNING, "MachineClassNotMigrated", cause.text)
            await control.write_status(machine, wanted)

    async def _done(self, machine: Machine) -> Outcome:
        wanted = without_own(machine.status, OwnCondition.CLASS_MIGRATED)
        await self._control.write_status(machine, wanted)
        return DONE


def _successor_of(meta: ObjectMeta) -> ObjectMeta:
    """Return the metadata of the MachineClass: name, labels and annotations stay."""
    annotations = {
        key: value
        for key, value in meta.annotations.items()
        if key != ANNOTATION_KUBECTL_LAST_APPLIED
    }
    return ObjectMeta(
        name=meta.name, namespace=meta.namespace, labels=meta.labels, annotations=annotations
    )
