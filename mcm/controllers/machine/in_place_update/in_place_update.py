"""The step UPDATE_IN_PLACE: drains, writes on the Node and on the machine as was decided.

The machine's status is written before the Node's: a step on the Node says that the machine shows
what led to it. The Node is never read from the server; each patch binds itself to the version seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from mcm.api.core import NODES, Node
from mcm.api.machine import Machine, MachinePhase
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.client.requests import PatchType
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.draining.condition import withdrawn
from mcm.controllers.machine.draining.mark import Mark, unmark_patch
from mcm.controllers.machine.draining.node_drain import NodeDrain
from mcm.controllers.machine.draining.request import Unfinished, of_a_node_that_stays
from mcm.controllers.machine.health.conditions import is_healthy
from mcm.controllers.machine.in_place_update.decision import (
    Drain,
    DropResult,
    Enter,
    Rest,
    Say,
    Situation,
    Turn,
    Uncordon,
    decide,
)
from mcm.controllers.machine.in_place_update.node_condition import stage_patch, without_result
from mcm.controllers.machine.own_conditions import OwnCondition, without_own
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.node_ownership import is_managed
from mcm.controllers.reachability import Reachability
from mcm.controllers.runtime import DONE, Outcome
from mcm.drain.request import Purpose
from mcm.events import EventType

_ROUNDS = 2 * len(Stage)
"""A pass goes through all the steps at most, each with a phase; more are a circle."""


@final
class InPlaceUpdate:
    """The step UPDATE_IN_PLACE."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        *,
        drain: NodeDrain,
        reachability: Callable[[], Reachability],
    ) -> None:
        self._control = control
        self._target = target
        self._drain = drain
        self._reachability = reachability

    async def update(self, machine: Machine) -> Outcome:
        """Go as far as possible now. Raises Conflict if machine or Node changed meanwhile."""
        drained = False
        for _ in range(_ROUNDS):
            found = self._target.owners.find(machine)
            node = found.node
            if found.obstacle or (node is not None and not is_managed(node)):
                return DONE  # not ours to touch; another step says why
            match decide(self._situation(machine, node, drained=drained)):
                case Rest(after):
                    return Outcome(after=after, reason="in-place update")
                case Drain() as move:
                    result = await self._drain_pass(machine, move)
                    if isinstance(result, Outcome):
                        return result
                    machine, drained = result, True
                case Enter() as move:
                    machine = await self._enter(machine, node, move)
                case Say(operation):
                    wanted = status.with_operation(machine.status, operation, self._control.now())
                    machine = await self._control.write_status(machine, wanted)
                case (Turn() | DropResult() | Uncordon()) as move if node is not None:
                    try:
                        if isinstance(move, Turn) and move.withdrawn:
                            machine = await self._drain.withdraw(machine)
                        await self._write_node(machine, node, move)
                    except NotFound:
                        return DONE  # its end will be announced
        raise AssertionError(f"the update of {machine.metadata.key} goes in circles")

    def _situation(self, machine: Machine, node: Node | None, *, drained: bool) -> Situation:
        settings = self._control.settings_of(machine)
        conditions = node.status.conditions if node is not None else ()
        return Situation(
            machine=machine,
            marks=marks_of(node) if node is not None else None,
            healthy=lambda: is_healthy(conditions, settings.node_conditions),
            timeout=settings.in_place_update_timeout,
            now=self._control.now(),
            servers=self._reachability(),
            drained=drained,
        )

    # ---- the drain -----------------------------------------------------------------------------

    async def _drain_pass(self, machine: Machine, move: Drain) -> Machine | Outcome:
        """Do one pass of the drain. Return the machine if it is done."""
        control = self._control
        wanted = of_a_node_that_stays(
            machine,
            control.settings_of(machine),
            start=move.start,
            purpose=Purpose.IN_PLACE_UPDATE,
            mark=Mark.CORDON_FOR_UPDATE,
        )
        answer = await self._drain.drain(machine, wanted)
        if not isinstance(answer, Unfinished):
            return answer.machine
        shown = answer.status
        if answer.trouble:
            failure = last_operation.in_place_drain_failed(answer.trouble)
            shown = status.with_operation(shown, failure, control.now())
        await control.write_failure(answer.machine, shown)
        return Outcome(after=answer.after, reason=answer.reason)

    # ---- the machine ---------------------------------------------------------------------------

    async def _enter(self, machine: Machine, node: Node | None, move: Enter) -> Machine:
        """Write the phase, with the Node's conditions: sets read the outcome from their copy."""
        now = self._control.now()
        wanted = status.with_operation(machine.status, move.operation, now)
        wanted = status.with_phase(wanted, move.phase, now)
        if move.phase is MachinePhase.RUNNING:
            wanted = without_own(wanted, OwnCondition.REPLACEABLE)  # it is not unhealthy any more
        wanted = withdrawn(wanted)  # a drain is over in each of these phases
        if node is not None:
            wanted = status.with_conditions(wanted, node.status.conditions)
        written = await self._control.write_status(machine, wanted)
        kind, reason = _EVENTS.get(move.phase, _BACK)
        self._control.tell(written, kind, reason, move.operation.description)
        return written

    # ---- the Node ------------------------------------------------------------------------------

    async def _write_node(
        self, machine: Machine, node: Node, move: Turn | DropResult | Uncordon
    ) -> None:
        """Write what the move says. What keeps the Node from being written is told."""
        try:
            await self._patch_node(machine, node, move)
        except (Conflict, NotFound):
            raise
        except KubeError as error:
            note = f"Node {node.metadata.name} cannot be written: {error}"
            self._control.tell(machine, EventType.WARNING, "InPlaceUpdateBlocked", note)
            raise

    async def _patch_node(
        self, machine: Machine, node: Node, move: Turn | DropResult | Uncordon
    ) -> None:
        writer, name = self._target.writer, node.metadata.name
        match move:
            case Turn(stage):
                patch = stage_patch(node, marks_of(node), stage, self._control.now())
                await writer.patch(
                    NODES, name, patch, subresource="status", patch_type=PatchType.STRATEGIC
                )
                self._turned(machine, move)
            case DropResult():
                await writer.patch(NODES, name, without_result(node))
                note = f"Took a result off Node {name} that was there before the update began"
                self._control.tell(machine, EventType.NORMAL, "OldUpdateResultRemoved", note)
            case Uncordon():
                if (lifted := unmark_patch(Mark.CORDON_FOR_UPDATE, node)) is not None:
                    await writer.patch(NODES, name, lifted.body, patch_type=lifted.kind)

    def _turned(self, machine: Machine, move: Turn) -> None:
        if move.withdrawn:
            note = "The labels that ask for an in-place update were removed: it is called off"
            self._control.tell(machine, EventType.NORMAL, "InPlaceUpdateWithdrawn", note)
        elif move.stage is Stage.SELECTED:
            note = "Its Node is drained now, to be updated in place"
            self._control.tell(machine, EventType.NORMAL, "SelectedForInPlaceUpdate", note)


_EVENTS = {
    MachinePhase.IN_PLACE_UPDATING: (EventType.NORMAL, "InPlaceUpdating"),
    MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL: (EventType.NORMAL, "InPlaceUpdateSuccessful"),
    MachinePhase.IN_PLACE_UPDATE_FAILED: (EventType.WARNING, "InPlaceUpdateFailed"),
}
_BACK = (EventType.NORMAL, "InPlaceUpdateWithdrawn")
