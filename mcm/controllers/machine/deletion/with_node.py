"""Deleting a machine because its Node object is, or was, deleted, or asks for it."""

from __future__ import annotations

from collections.abc import Callable, MutableSet
from typing import final

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.names import ANNOTATION_TRIGGER_DELETION
from mcm.client.errors import NotFound
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.node_ownership import is_managed
from mcm.controllers.reachability import Reachability
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType


@final
class DeletionWithNode:
    """``lost_node`` holds the UIDs of machines whose Node object was seen to be deleted."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        *,
        lost_node: MutableSet[str],
        reachability: Callable[[], Reachability],
    ) -> None:
        self._control = control
        self._target = target
        self._lost_node = lost_node
        self._reachability = reachability

    async def follow(self, machine: Machine) -> Outcome:
        """Delete the machine if its Node goes or asks for it; the store tells what then is due.

        An absent Node alone says nothing: it may not have joined yet, or the mirror may be behind.
        Only a deletion that was witnessed counts, and only if the server still says so.
        """
        if not self._is_told(machine) or not self._reachability().reachable:
            return DONE
        node = await self._target.live_node(machine.node_name)
        if node is not None and not self._goes_with(machine, node):
            return DONE
        self._tell(machine, node)
        try:
            await self._control.delete(machine)
        except NotFound:
            return DONE
        return DONE

    def _is_told(self, machine: Machine) -> bool:
        node = self._target.nodes.get(machine.node_name)
        if node is None:
            return machine.metadata.uid in self._lost_node
        self._lost_node.discard(machine.metadata.uid)
        return is_managed(node) and self._goes_with(machine, node)

    def _tell(self, machine: Machine, node: Node | None) -> None:
        reason, what = "NodeDeleted", "was deleted"
        if node is not None and node.metadata.deletion_timestamp is None:
            reason, what = "DeletionTriggered", f"bears {ANNOTATION_TRIGGER_DELETION}: true"
        note = f"Node {machine.node_name} {what}, so its machine goes too"
        self._control.tell(machine, EventType.WARNING, reason, note)

    def _goes_with(self, machine: Machine, node: Node) -> bool:
        going = node.metadata.deletion_timestamp is not None or asks_for_deletion(node)
        return going and self._target.owners.of(node, asking=machine).is_of(machine)


def asks_for_deletion(node: Node) -> bool:
    """Tell whether somebody who may not see machines wants this Node's to be replaced.

    On a MachineDeployment the same key means something else, and has another form.
    """
    return node.metadata.annotations.get(ANNOTATION_TRIGGER_DELETION) == "true"
