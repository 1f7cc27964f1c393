"""Showing how far a deletion is, on the machine and its Node, where it does not go on at once.

What takes no time is done again by whoever comes after us, and worth no write.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final, final

from mcm.api.machine import Machine
from mcm.client.errors import KubeError
from mcm.controllers.machine.deletion.node_condition import TerminatingCondition
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import DeletionStep, InLine, step_of
from mcm.controllers.runtime import Outcome, earliest

_AFTER_THE_DRAIN = (
    DeletionStep.DETACH_VOLUMES,
    DeletionStep.DELETE_VM,
    DeletionStep.DELETE_NODE,
)
"""A drain that waits marks the Node itself."""

_MOMENT: Final = timedelta(seconds=2)
"""What takes longer is told. Timestamps are of whole seconds: no less than one."""

_LONG_LINE: Final = timedelta(seconds=30)
"""How long a machine waits for its turn before people are told: of a large fleet that is deleted at
once most do, for as long as the API server takes for all the others."""


@final
class DeletionTelling:
    """Writes what the steps passed in memory."""

    def __init__(self, record: DeletionRecord, condition: TerminatingCondition) -> None:
        self._record = record
        self._condition = condition

    async def paused(self, machine: Machine, result: Outcome | InLine) -> Outcome:
        """Write where the deletion stands if it has lasted longer than a moment, or is in line for
        long, else have it looked at again then. Raises what a status write does."""
        until, worth = (
            (Outcome(reason="waiting for a place to delete"), _LONG_LINE)
            if isinstance(result, InLine)
            else (result, _MOMENT)
        )
        if self._record.is_over(machine):
            return until
        left = self._record.seconds_left(machine, worth)
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
