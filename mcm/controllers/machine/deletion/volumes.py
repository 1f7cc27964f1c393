"""Detaching volumes after a forced drain: spare them the wait for a kubelet that may be dead."""

from __future__ import annotations

from typing import final

from mcm.api.core import VOLUME_ATTACHMENTS, VolumeAttachment
from mcm.api.machine import Machine
from mcm.client.errors import Conflict, NotFound
from mcm.controllers.fanout import fan_out
from mcm.controllers.indexes import attachments_on
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.runtime import Outcome
from mcm.events import EventType

_TRIES = 5
"""Failed rounds after which attachments are left to the cluster's own controller."""


@final
class VolumeDetachment:
    """The step DETACH_VOLUMES."""

    def __init__(
        self, control: ControlCluster, target: TargetCluster | None, record: DeletionRecord
    ) -> None:
        self._control = control
        self._target = target
        self._record = record

    async def detach(self, machine: Machine) -> StepResult:
        """Delete the attachments to the machine's Node that are left."""
        target, record, name = self._target, self._record, machine.node_name
        if target is None:
            return record.proceed(machine, last_operation.no_target_cluster())
        node = target.nodes.get(name)
        if node is None:
            gone = last_operation.detach_skipped(f'node "{name}" not found')
            return record.proceed(machine, gone)
        if obstacle := target.owners.find(machine).obstacle:
            return record.proceed(machine, last_operation.detach_skipped(obstacle))
        live = [a for a in attachments_on(target.attachments, name) if _is_live(a)]
        if not node.status.volumes_attached and not live:
            machine = record.proceed(machine, last_operation.volumes_detached(name))
            return await record.written(machine)
        if wait := record.wait_for(machine, "detach"):
            return Outcome(after=wait, reason="volume attachments could not be deleted")
        errors = await fan_out(lambda a: _delete(target, a), live)
        if not errors:
            machine = record.proceed(machine, last_operation.no_live_attachments(name))
            return await record.written(machine)
        return await self._failed(machine, "; ".join(sorted(map(str, errors))))

    async def _failed(self, machine: Machine, error: str) -> StepResult:
        record = self._record
        wait = record.failed(machine, Pace.TRANSIENT, "detach")
        if record.failures(machine) >= _TRIES:
            self._control.tell(machine, EventType.WARNING, "VolumesLeftAttached", error)
            machine = record.proceed(machine, last_operation.detach_skipped(error))
            return await record.written(machine)
        await record.show(machine, last_operation.detach_failed(error))
        return Outcome(after=wait, reason="volume attachments could not be deleted")


def _is_live(attachment: VolumeAttachment) -> bool:
    return attachment.metadata.deletion_timestamp is None


async def _delete(target: TargetCluster, attachment: VolumeAttachment) -> None:
    meta = attachment.metadata
    try:
        await target.writer.delete(VOLUME_ATTACHMENTS, meta.name, uid=meta.uid)
    except (NotFound, Conflict):
        return  # gone, or another one of that name
