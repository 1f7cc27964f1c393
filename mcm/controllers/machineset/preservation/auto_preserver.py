"""Has Failed machines kept within a set's budget, never one too many, whatever answers get lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import final

from mcm.api.core import Node
from mcm.api.machine import MACHINES, Machine, MachineSet
from mcm.api.names import PRESERVE_AUTO
from mcm.client.errors import KubeError, NotFound
from mcm.client.verbs import ObjectWriter
from mcm.controllers.fanout import fan_out, patch_each
from mcm.controllers.machineset.preservation.budget import (
    Budget,
    Subject,
    annotation,
    budget_of,
    is_concerned,
)
from mcm.controllers.owning.outcome import is_refusal
from mcm.controllers.preconditions import for_this_version


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """What came of it. Of ``unsure`` machines nobody knows whether they are kept now."""

    errors: Sequence[KubeError] = ()
    unsure: Collection[str] = ()


@final
class AutoPreserver:
    """Writes the annotations that the machine controller acts upon.

    Its memory are the machines whose annotation was never answered, at the version for which it was
    meant: while the mirror shows that version, nobody knows, and they count as kept.
    """

    def __init__(
        self,
        writer: ObjectWriter,
        node_of: Callable[[Machine], Node | None],
        *,
        preserve_timeout: timedelta,
    ) -> None:
        self._writer = writer
        self._node_of = node_of
        self._preserve_timeout = preserve_timeout
        self._unanswered: dict[str, dict[str, str]] = {}

    def forget(self, set_key: str) -> None:
        """The set is no more, or on its way out."""
        self._unanswered.pop(set_key, None)

    async def keep(
        self,
        machine_set: MachineSet,
        machines: Sequence[Machine],
        leaving: Collection[str],
        now: datetime,
    ) -> Kept:
        """Keep and release machines as ``machine_set`` asks; those that are refused take no place.

        ``leaving`` names machines that go in any case.
        """
        unanswered = self._still_unanswered(machine_set.metadata.key, machines)
        budget = budget_of(
            machine_set.spec.auto_preserve_failed_machine_max,
            (Subject(m, self._node_of(m)) for m in machines if is_concerned(m)),
            now,
            preserve_timeout=self._preserve_timeout,
            leaving=leaving,
            unanswered=unanswered,
        )
        errors = await self._release(budget.release)
        kept = await self._fill(machine_set.metadata.key, budget)
        return Kept((*errors, *kept.errors), kept.unsure)

    def _still_unanswered(self, set_key: str, machines: Iterable[Machine]) -> Collection[str]:
        asked = self._unanswered.pop(set_key, None)
        if not asked:
            return ()
        versions = {m.metadata.name: m.metadata.resource_version for m in machines}
        left = {name: at for name, at in asked.items() if versions.get(name) == at}
        if left:
            self._unanswered[set_key] = left
        return tuple(left)

    async def _release(self, machines: Sequence[Machine]) -> Sequence[KubeError]:
        changes = ((m.metadata, dict(annotation(None))) for m in machines)
        return await patch_each(self._writer, MACHINES, changes, bound=for_this_version)

    async def _fill(self, set_key: str, budget: Budget) -> Kept:
        waiting, room = list(budget.candidates), budget.room
        errors: list[KubeError] = []
        unsure: list[str] = []
        while room > 0 and waiting:
            asked, waiting = waiting[:room], waiting[room:]
            outcomes = await self._ask(set_key, asked)
            for machine, error in zip(asked, outcomes, strict=True):
                if error is None:
                    room -= 1
                elif not isinstance(error, NotFound):
                    errors.append(error)
                    if not is_refusal(error):
                        room -= 1
                        unsure.append(machine.metadata.name)
        return Kept(errors, unsure)

    async def _ask(self, set_key: str, machines: Sequence[Machine]) -> Sequence[KubeError | None]:
        outcomes: dict[str, KubeError] = {}

        async def ask(machine: Machine) -> None:
            error = await self._annotate(set_key, machine)
            if error is not None:
                outcomes[machine.metadata.name] = error

        await fan_out(ask, machines)
        return [outcomes.get(m.metadata.name) for m in machines]

    async def _annotate(self, set_key: str, machine: Machine) -> KubeError | None:
        """Annotate one machine as it was seen. It is on record while nobody knows what became of
        that, also if this is cancelled."""
        meta = machine.metadata
        asked = self._unanswered.setdefault(set_key, {})
        asked[meta.name] = meta.resource_version
        try:
            await self._writer.patch(
                MACHINES,
                meta.name,
                for_this_version(meta, annotation(PRESERVE_AUTO)),
                namespace=meta.namespace,
            )
        except KubeError as error:
            if is_refusal(error):
                del asked[meta.name]
            return error
        del asked[meta.name]
        return None
