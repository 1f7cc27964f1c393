"""Deleting the Node object of a machine whose VM is gone."""

from __future__ import annotations

from typing import final

from mcm.api.core import NODES, Node
from mcm.api.machine import LastOperation, Machine
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.client.requests import PatchType
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.deletion.volumes_after_vm import VolumesAfterVM
from mcm.controllers.machine.node.template import release_patch
from mcm.controllers.machine.ports import TargetCluster
from mcm.controllers.runtime import Outcome


@final
class NodeObjectDeletion:
    """The step DELETE_NODE."""

    def __init__(
        self,
        target: TargetCluster | None,
        record: DeletionRecord,
        volumes: VolumesAfterVM | None,
    ) -> None:
        self._target = target
        self._record = record
        self._volumes = volumes

    async def delete(self, machine: Machine) -> StepResult:
        """Delete the Node object, once our own finalizer on it is gone. Others' may hold it."""
        target = self._target
        # Its label may have been edited since the deletion began.
        found = target.owners.find(machine).found if target is not None else ""
        name = found or machine.node_name
        if target is None or not name:
            nameless = last_operation.no_node_label(machine.metadata.name)
            return await self._record.proceed_to_end(machine, nameless)
        # The server is asked for a Node the mirror does not show: it may have joined a moment ago,
        # and once the machine is gone nobody would look for it any more.
        if wait := self._record.wait_for(machine, "node"):
            return Outcome(after=wait, reason="the node object could not be deleted")
        try:
            node = target.nodes.get(name) or await target.live_node(name)
        except KubeError as error:
            return await self._stays(machine, last_operation.node_unread(name, str(error)))
        if node is None:
            return await self._record.proceed_to_end(machine, last_operation.no_node_object(name))
        if not found and (obstacle := target.owners.find(machine).obstacle):
            return await self._record.proceed_to_end(machine, last_operation.node_left(obstacle))
        if self._volumes is not None:
            before = await self._volumes.wait(machine, node)
            if before is not None:
                return before
        return await self._delete(target, machine, node)

    async def _delete(self, target: TargetCluster, machine: Machine, node: Node) -> StepResult:
        name, failed = node.metadata.name, last_operation.node_finalizer_failed
        try:
            node = await _release(target, node)
            failed = last_operation.node_deletion_failed
            await target.writer.delete(NODES, name, uid=node.metadata.uid)
        except NotFound:
            return await self._record.proceed_to_end(machine, last_operation.no_node_object(name))
        except Conflict:
            raise
        except KubeError as error:
            return await self._stays(machine, failed(name, str(error)))
        return await self._record.proceed_to_end(machine, last_operation.node_deleted(name))

    async def _stays(self, machine: Machine, failure: LastOperation) -> Outcome:
        await self._record.show(machine, failure)
        wait = self._record.failed(machine, Pace.TRANSIENT, "node")
        return Outcome(after=wait, reason="the node object could not be deleted")


async def _release(target: TargetCluster, node: Node) -> Node:
    """Take our finalizer off the Node, if it bears it."""
    patch = release_patch(node)
    if patch is None:
        return node
    return await target.writer.patch(
        NODES, node.metadata.name, patch, patch_type=PatchType.STRATEGIC
    )
