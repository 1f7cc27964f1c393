"""Volumes still attached to the Node of a deleted VM: have the cluster detach them at once."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from datetime import timedelta
from typing import Final, final

from mcm.api.core import Node, VolumeAttachment
from mcm.api.machine import Machine
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.deletion.attachments import delete_live, live, tell_left
from mcm.controllers.machine.deletion.out_of_service import OutOfService, out_of_service_since
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.memory import Detachment
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.runtime import Outcome
from mcm.drain.volumes import attachments_on, is_shareable
from mcm.drain.volumes.identity import identity_of

LONGEST: Final = timedelta(seconds=30)
"""What attachments may delay a Node's deletion at most; less if the detach timeout is shorter."""
_PAUSE: Final = 5.0
"""Seconds after which attachments that could not be deleted are tried again."""


@final
class VolumesAfterVM:
    """Part of the step DELETE_NODE. ``under_way`` is by machine UID.

    No kubelet can have a volume mounted once the provider has confirmed that the VM is gone. The
    cluster believes that only of a Node that says so, and only for as long as there is a Node:
    afterwards it waits for six minutes, and so does every pod that needs the volume.
    """

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        record: DeletionRecord,
        under_way: MutableMapping[str, Detachment],
        out_of_service: OutOfService,
    ) -> None:
        self._control = control
        self._target = target
        self._record = record
        self._under_way = under_way
        self._out_of_service = out_of_service
        self._limit = min(LONGEST, control.defaults.pv_detach_timeout)

    async def wait(self, machine: Machine, node: Node) -> StepResult | None:
        """Return what to do before the Node may be deleted; None: nothing."""
        if not last_operation.says_vm_deleted(machine.status.last_operation):
            return None
        attachments, listed = self._exclusive(node)
        if not attachments and not listed:
            self._under_way.pop(machine.metadata.uid, None)
            return None
        if self._target.owners.find(machine).obstacle:
            return None
        detachment = self._under_way.get(machine.metadata.uid)
        if detachment is None:
            detachment = await self._begun(machine, node, attachments, len(listed))
        if detachment is None:
            return None
        left = (detachment.since + self._limit - self._control.now()).total_seconds()
        if left <= 0:
            names = [a.metadata.name for a in attachments] or listed
            tell_left(self._control, machine, node.metadata.name, names)
            self._under_way.pop(machine.metadata.uid, None)
            return None
        if not detachment.by_taint and await delete_live(self._target.writer, attachments):
            left = min(left, _PAUSE)
        return await self._awaited(machine, node, detachment, left)

    def _exclusive(self, node: Node) -> tuple[Sequence[VolumeAttachment], Sequence[str]]:
        """Return the attachments for which others may have to wait, and the names in the Node's
        status; what several Nodes may have keeps nobody waiting."""
        volumes = self._target.volumes
        attachments: list[VolumeAttachment] = []
        shared: set[str] = set()
        for attachment in attachments_on(self._target.attachments, node.metadata.name):
            volume = volumes.get(attachment.spec.source.persistent_volume_name)
            if volume is not None and is_shareable(volume):
                shared.update(identity_of(volume).names)
            else:
                attachments.append(attachment)
        names = (volume.name for volume in node.status.volumes_attached)
        return attachments, [name for name in names if name not in shared]

    async def _begun(
        self,
        machine: Machine,
        node: Node,
        attachments: Sequence[VolumeAttachment],
        listed: int,
    ) -> Detachment | None:
        """Decide how; None where all that is attached is being detached without us."""
        now, given_up = self._control.now(), out_of_service_since(node)
        ending = len(attachments) - len(live(attachments))
        if given_up is None and ending == len(attachments) and listed <= ending:
            return None
        if not self._limit:
            return None
        by_taint = given_up is not None or (
            await self._out_of_service.is_heeded()
            and await self._out_of_service.give_up(machine, node, "its VM is deleted") is not None
        )
        begun = Detachment(
            since=min(given_up or now, now),
            attachments=frozenset(a.metadata.uid for a in attachments),
            volumes=max(len(attachments), listed),
            by_taint=by_taint,
        )
        self._under_way[machine.metadata.uid] = begun
        return begun

    async def _awaited(
        self, machine: Machine, node: Node, detachment: Detachment, left: float
    ) -> StepResult:
        """Say what is waited for, if the machine does not. It is written at once: what the provider
        has confirmed need not be asked again by each pass."""
        since = detachment.since
        words = (
            last_operation.out_of_service_after_vm
            if detachment.by_taint
            else last_operation.detaching_after_vm
        )
        said = words(node.metadata.name, detachment.volumes, since, since + self._limit)
        if machine.status.last_operation.description != said.description:
            return await self._record.written(self._record.proceed(machine, said))
        return Outcome(after=left, reason="volumes of a deleted VM are being detached")
