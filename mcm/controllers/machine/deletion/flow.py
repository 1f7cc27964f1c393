"""Take a machine away: its pods, VM, Node object, and at last our finalizer.

Where it is in that is written on the machine before each step that cannot be undone, so any process
can go on from there. What can go on now goes on in the same pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, final

from mcm.api.machine import Machine
from mcm.api.names import MACHINE_FINALIZER
from mcm.client.errors import NotFound
from mcm.controllers.finalizers import without_finalizer
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.creation.bootstrap_token import BootstrapTokens
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import DeletionStep, StepResult, step_of
from mcm.controllers.machine.last_operation import Marker
from mcm.controllers.machine.node.matching import node_label_patch
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType

DeletionAct: TypeAlias = Callable[[Machine], Awaitable[StepResult]]


@final
class Deletion:
    """The deletion flow: begins it, has ``steps`` done in between, and ends it."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster | None,
        record: DeletionRecord,
        *,
        steps: Mapping[DeletionStep, DeletionAct],
        tokens: BootstrapTokens | None,
    ) -> None:
        self._control = control
        self._target = target
        self._record = record
        self._tokens = tokens
        self._acts: Mapping[DeletionStep, DeletionAct] = {
            DeletionStep.BEGIN: self._begin,
            **steps,
            DeletionStep.REMOVE_FINALIZER: self._remove_finalizer,
        }

    async def delete(self, machine: Machine) -> Outcome:
        """Go as far as possible now. The machine has a deletion timestamp and our finalizer."""
        for _ in range(2 * len(DeletionStep)):
            result = await self._acts[step_of(machine)](machine)
            if isinstance(result, Outcome):
                return result
            machine = result
        raise AssertionError(f"the deletion of {machine.metadata.key} goes in circles")

    async def _begin(self, machine: Machine) -> StepResult:
        """Enter the phase. Where the Node is known, or is of no use, its search is left out."""
        if self._target is None:
            return await self._record.enter(machine, last_operation.no_target_cluster())
        if name := self._target.owners.find(machine).found:
            machine = await self._control.patch(machine, node_label_patch(machine, name))
        marker = Marker.DRAIN if machine.node_name else Marker.FIND_NODE
        return await self._record.enter(machine, last_operation.terminating(marker))

    async def _remove_finalizer(self, machine: Machine) -> StepResult:
        change = without_finalizer(machine.metadata, MACHINE_FINALIZER)
        if change is None:
            return DONE
        if self._tokens is not None:
            await self._tokens.revoke(machine)
        try:
            await self._control.patch(machine, for_this_version(machine.metadata, change))
        except NotFound:
            return DONE
        self._control.tell(machine, EventType.NORMAL, "Deleted", "The machine is gone")
        return DONE
