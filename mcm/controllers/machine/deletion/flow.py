"""Take a machine away: its pods, VM, Node object, and at last our finalizer.

What can go on now goes on in the same pass. Where that ends, or takes long, it is written on the
machine, and any process can go on from there; what was not is done again, which is harmless.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, final

from mcm.api.machine import Machine
from mcm.client.errors import Conflict, KubeError
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import DeletionStep, StepResult, step_of
from mcm.controllers.machine.deletion.telling import DeletionTelling
from mcm.controllers.machine.last_operation import Marker
from mcm.controllers.machine.ports import TargetCluster
from mcm.controllers.runtime import Outcome
from mcm.drain.observation import pods_on
from mcm.drain.selection import must_go

DeletionAct: TypeAlias = Callable[[Machine], Awaitable[StepResult]]


@final
class Deletion:
    """The deletion flow: begins it, has ``steps`` done in between, and ends it."""

    def __init__(
        self,
        target: TargetCluster | None,
        record: DeletionRecord,
        telling: DeletionTelling,
        *,
        steps: Mapping[DeletionStep, DeletionAct],
    ) -> None:
        self._target = target
        self._record = record
        self._telling = telling
        self._acts: Mapping[DeletionStep, DeletionAct] = {
            DeletionStep.BEGIN: self._begin,
            **steps,
        }

    async def delete(self, machine: Machine) -> Outcome:
        """Go as far as possible now. The machine has a deletion timestamp and our finalizer."""
        for _ in range(2 * len(DeletionStep)):
            machine = self._record.named(machine)
            result = await self._taken(machine)
            if not isinstance(result, Machine):
                return await self._telling.paused(machine, result)
            machine = result
        raise AssertionError(f"the deletion of {machine.metadata.key} goes in circles")

    async def _taken(self, machine: Machine) -> StepResult:
        try:
            return await self._acts[step_of(machine)](machine)
        except Conflict:
            raise
        except KubeError:
            await self._telling.tell_if_possible(machine)
            raise

    async def _begin(self, machine: Machine) -> StepResult:
        """Enter the phase. Where the Node is known, or is of no use, its search is left out."""
        if self._target is None:
            return self._record.enter(machine, last_operation.no_target_cluster())
        if name := self._target.owners.find(machine).found:
            machine = await self._record.name_node(machine, name)
        if not machine.node_name:
            return self._record.enter(machine, last_operation.terminating(Marker.FIND_NODE))
        machine = self._record.enter(machine, last_operation.terminating(Marker.DRAIN))
        if any(map(must_go, pods_on(self._target.pods, machine.node_name))):
            return await self._record.written(machine)
        return machine
