"""The deletion's step DRAIN: say on the Node that it goes, have its pods taken off, record it."""

from __future__ import annotations

from typing import final

import msgspec

from mcm.api.machine import LastOperation, Machine
from mcm.client.errors import Conflict, KubeError
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.deletion.node_condition import TerminatingCondition
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.draining.node_drain import CIRCUMSTANCES, NodeDrain
from mcm.controllers.machine.draining.request import (
    Drained,
    MachineDrain,
    Unfinished,
    before_deletion,
    mode_at,
)
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.runtime import Outcome
from mcm.drain.mode import Force
from mcm.drain.observation import pods_on
from mcm.drain.selection import must_go


@final
class DrainBeforeDeletion:
    """The step DRAIN; ``drain`` is None where there is no target cluster."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster | None,
        record: DeletionRecord,
        condition: TerminatingCondition,
        drain: NodeDrain | None,
    ) -> None:
        self._control = control
        self._target = target
        self._record = record
        self._condition = condition
        self._drain = drain

    async def drain(self, machine: Machine) -> StepResult:
        """Do one pass; return the machine with the next step's marker, or when to look again."""
        if self._target is None or self._drain is None:
            return self._record.proceed(machine, last_operation.no_target_cluster())
        found = self._target.owners.find(machine)
        if found.found:
            machine = await self._record.name_node(machine, found.found)
            found = self._target.owners.find(machine)
        if not machine.node_name:
            return self._record.proceed(machine, last_operation.drain_skipped())
        if obstacle := found.obstacle:
            # To wait for others to settle it could take for ever, and the VM goes in any case.
            return self._record.proceed(machine, last_operation.drain_left_out(obstacle))
        settings, now = self._control.settings_of(machine), self._control.now()
        wanted = before_deletion(machine, settings, now)
        if (again := await self._say_terminating(self._target, machine, wanted)) is not None:
            return again
        match await self._drain.drain(machine, wanted):
            case Drained() as answer:
                machine = msgspec.structs.replace(answer.machine, status=answer.status)
                machine = self._record.proceed(machine, _done(answer))
                if answer.force is Force.NONE:
                    return machine
                return await self._record.written(machine)  # pods were not asked: worth a record
            case Unfinished() as answer:
                failure = last_operation.drain_failed(answer.trouble) if answer.trouble else None
                await self._record.show_drain(answer.machine, answer.status, failure)
                return Outcome(after=answer.after, reason=answer.reason)

    async def _say_terminating(
        self, target: TargetCluster, machine: Machine, wanted: MachineDrain
    ) -> Outcome | None:
        """Say on the Node that it goes, if that takes time. None: go on, as a forced deletion does
        in any case."""
        node = target.owners.own_node(machine)
        if node is None or not any(map(must_go, pods_on(target.pods, machine.node_name))):
            return None
        gentle = not mode_at(self._control.now(), wanted.request, node).forced
        if gentle and (wait := self._record.wait_for(machine, CIRCUMSTANCES)):
            return Outcome(after=wait, reason="the node could not be marked")
        try:
            await self._condition.write(machine)
        except Conflict:
            raise
        except KubeError as error:
            if gentle:
                failure = last_operation.node_conditions_failed(str(error))
                await self._record.show(machine, failure)
                wait = self._record.failed(machine, Pace.TRANSIENT, CIRCUMSTANCES)
                return Outcome(after=wait, reason="the node could not be marked")
        return None


def _done(answer: Drained) -> LastOperation:
    if answer.force is Force.NONE:
        return last_operation.drained()
    if answer.refusals:
        return last_operation.drain_failed_but_forced(answer.refusals)
    return last_operation.force_drained()
