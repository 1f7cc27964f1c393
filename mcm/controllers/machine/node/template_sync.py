"""Where a Node's labels, annotations, taints and capacity are written, as its machine says."""

from __future__ import annotations

from typing import final

from mcm.api.core import NODES
from mcm.api.machine import Machine
from mcm.client.requests import PatchType
from mcm.controllers.machine.node.capacity import capacity_patch
from mcm.controllers.machine.node.matching import is_managed
from mcm.controllers.machine.node.template import node_patch
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.runtime import DONE, Outcome


@final
class NodeTemplateSync:
    """Keeps a machine's Node as its template and its class say."""

    def __init__(self, control: ControlCluster, target: TargetCluster) -> None:
        self._control = control
        self._target = target

    async def sync(self, machine: Machine) -> Outcome:
        """Write what differs. Raises Conflict if taints are to change and the Node has changed."""
        node = self._target.owners.own_node(machine)
        if node is None or not is_managed(node):
            return DONE
        name, class_, writer = (
            node.metadata.name,
            self._control.class_of(machine),
            self._target.writer,
        )
        capacity = capacity_patch(node, class_)
        if capacity is not None:
            node = await writer.patch(NODES, name, capacity, subresource="status")
        patch = node_patch(node, machine, class_)
        if patch is not None:
            await writer.patch(NODES, name, patch, patch_type=PatchType.STRATEGIC)
        return DONE
