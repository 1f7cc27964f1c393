"""The condition ``Terminating`` of a Node: written where its machine does not go at once."""

from __future__ import annotations

from typing import final

from mcm.api.core import NODES
from mcm.api.machine import Machine
from mcm.client.errors import NotFound
from mcm.client.requests import PatchType
from mcm.controllers.machine.health.conditions import is_healthy
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.drain.marks import terminating_patch


@final
class TerminatingCondition:
    """``target`` is None where there is no target cluster, and so no Node."""

    def __init__(self, control: ControlCluster, target: TargetCluster | None) -> None:
        self._control = control
        self._target = target

    async def write(self, machine: Machine) -> None:
        """Say on the machine's own Node that it goes, unless it says so. Raises what the API client
        raises, but for a Node that is gone."""
        node = self._target.owners.own_node(machine) if self._target is not None else None
        if self._target is None or node is None:
            return
        conditions = node.status.conditions
        healthy = is_healthy(conditions, self._control.settings_of(machine).node_conditions)
        patch = terminating_patch(node, self._control.now(), unhealthy=not healthy)
        if patch is None:
            return
        name = node.metadata.name
        try:
            await self._target.writer.patch(
                NODES, name, patch, subresource="status", patch_type=PatchType.STRATEGIC
            )
        except NotFound:
            return
