"""Carrying out what :mod:`.node_decoration` decides, where there is a target cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from mcm.api.core import NODES, Node
from mcm.api.machine import MachineDeploymentStatus
from mcm.api.meta import JSONObject
from mcm.client.errors import KubeError, NotFound
from mcm.controllers.deployment.node_decoration import node_changes, wishes_for
from mcm.controllers.deployment.status import is_complete
from mcm.controllers.deployment.world import World
from mcm.controllers.fanout import fan_out
from mcm.controllers.preconditions import for_this_version
from mcm.informers.store import Store
from mcm.informers.writer import Writer


@final
class NodeActions:
    """All writes to Nodes that deployments make. ``annotating``: the autoscaler flag."""

    def __init__(self, nodes: Store[Node], writer: Writer, *, annotating: bool) -> None:
        self._nodes = nodes
        self._writer = writer
        self._annotating = annotating

    async def decorate(self, world: World, status: MachineDeploymentStatus) -> Sequence[KubeError]:
        """Write what nodes of the deployment lack or have too much; one patch a node."""
        updating = world.new is not None and world.updating
        complete = is_complete(status, world.deployment)
        wishes = [
            (
                wishes_for(
                    s,
                    is_new=s is world.new,
                    steering=world.steering and updating,
                    updating=updating,
                    complete=complete,
                    annotating=self._annotating,
                ),
                world.machines[s.metadata.uid],
            )
            for s in world.sets
        ]
        return await fan_out(self._patch, node_changes(wishes, self._nodes.get))

    async def _patch(self, pair: tuple[Node, JSONObject]) -> None:
        meta, change = pair[0].metadata, pair[1]
        try:
            await self._writer.patch(NODES, meta.name, for_this_version(meta, change))
        except NotFound:
            return  # the machine's node is gone already
