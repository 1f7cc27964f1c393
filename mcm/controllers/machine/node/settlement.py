"""Settling which Node is a machine's: its label is corrected, or it says what is wrong.

Where nothing tells whose a Node is, each machine that names it shows so, once, and nobody touches
that Node until somebody corrects a label or one of the machines is gone.
"""

from __future__ import annotations

from typing import final

from mcm.api.labels import is_label_value
from mcm.api.machine import Machine, MachineStatus
from mcm.api.names import STATUS_FALSE
from mcm.controllers.machine.node.matching import node_label_patch
from mcm.controllers.machine.own_conditions import OwnCondition, find_own, with_own, without_own
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.node_ownership import OwnNode
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType

REASON_CONTESTED = "NodeNamedTwice"
REASON_OF_ANOTHER = "NodeOfAnotherMachine"
_KIND = OwnCondition.NODE_UNAMBIGUOUS


@final
class NodeSettlement:
    """The step SETTLE_NODE."""

    def __init__(self, control: ControlCluster, target: TargetCluster) -> None:
        self._control = control
        self._target = target

    async def settle(self, machine: Machine) -> Outcome:
        """Write what the machine's label or conditions lack; nothing if all is as it should be."""
        found = self._target.owners.find(machine)
        if is_label_value(found.found) and found.found:
            machine = await self._correct(machine, found)
            found = self._target.owners.find(machine)
        await self._show(machine, found)
        return DONE

    async def _correct(self, machine: Machine, found: OwnNode) -> Machine:
        before = f"named {machine.node_name}" if machine.node_name else "was missing"
        note = f"Label node {before}, but this machine's Node is {found.found}: set to that"
        machine = await self._control.patch(machine, node_label_patch(machine, found.found))
        self._control.tell(machine, EventType.WARNING, "NodeLabelCorrected", note)
        return machine

    async def _show(self, machine: Machine, found: OwnNode) -> None:
        shown = find_own(machine.status, _KIND)
        wanted = self._wanted(machine.status, found)
        if wanted is machine.status:
            return
        told = find_own(wanted, _KIND)
        await self._control.write_status(machine, wanted)
        if told is not None and (shown is None or shown.message != told.message):
            self._control.tell(machine, EventType.WARNING, told.reason, told.message)

    def _wanted(self, status: MachineStatus, found: OwnNode) -> MachineStatus:
        if not found.obstacle:
            return without_own(status, _KIND)
        reason = REASON_CONTESTED if found.contested else REASON_OF_ANOTHER
        return with_own(status, _KIND, STATUS_FALSE, reason, _told(found), self._control.now())


def _told(found: OwnNode) -> str:
    if found.contested:
        consequence = "Nothing is done to the node, nor to this machine because of it, before"
        return f"{found.obstacle}. {consequence} the label node is corrected on all but one of them"
    return f"{found.obstacle}: correct this machine's label node"
