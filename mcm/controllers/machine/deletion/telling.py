"""Showing how far a deletion is, on the machine and its Node, where it does not go on at once.

What takes no time is done again by whoever comes after us, and worth no write.
"""

from __future__ import annotations

from contextlib import suppress
from typing import final

from mcm.api.machine import Machine
from mcm.client.errors import KubeError
from mcm.controllers.machine.deletion.node_condition import TerminatingCondition
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import DeletionStep, step_of
from mcm.controllers.runtime import Outcome, earliest

_AFTER_THE_DRAIN = (
    DeletionStep.DETACH_VOLUMES,
    DeletionStep.DELETE_VM,
    DeletionStep.DELETE_NODE,
)
"""A drain that waits marks the Node itself."""


@final
class DeletionTelling:
    """Writes what the steps passed in memory."""

    def __init__(self, record: DeletionRecord, condition: TerminatingCondition) -> None:
        self._record = record
        self._condition = condition

    async def paused(self, machine: Machine, until: Outcome) -> Outcome:
        """Write where the deletion stands if it has lasted longer than a moment, else have it
        looked at again then. Raises what a status write does."""
        if self._record.is_over(machine):
            return until
        left = self._record.moment_left(machine)
        if left > 0:
            return earliest(until, Outcome(after=left, reason=until.reason))
        await self._mark(await self._record.written(machine))
        return until

    async def tell_if_possible(self, machine: Machine) -> Machine:
        """Write it now, where what is under way, or has failed, is of more weight."""
        machine = await self._record.written_if_possible(machine)
        await self._mark(machine)
        return machine

    def during(self, machine: Machine) -> LongCall:
        """Return what tells while the provider is asked for ``machine``."""
        return LongCall(self, machine)

    async def _mark(self, machine: Machine) -> None:
        if step_of(machine) in _AFTER_THE_DRAIN:
            with suppress(KubeError):  # nothing waits for it: the Node has been drained
                await self._condition.write(machine)


@final
class LongCall:
    """Awaited while a call takes long; ``machine`` is the latest of what is known of it."""

    def __init__(self, telling: DeletionTelling, machine: Machine) -> None:
        self.machine = machine
        self._telling = telling

    async def __call__(self) -> None:
        self.machine = await self._telling.tell_if_possible(self.machine)
