"""Deleting VolumeAttachments of a Node, and naming those that stay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from mcm.api.core import VOLUME_ATTACHMENTS, VolumeAttachment
from mcm.api.machine import Machine
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.client.verbs import ObjectWriter
from mcm.controllers.fanout import fan_out
from mcm.controllers.machine.ports import ControlCluster
from mcm.events import EventType
from mcm.wording import first_few

_NAMED: Final = 3


def live(attachments: Sequence[VolumeAttachment]) -> Sequence[VolumeAttachment]:
    """Return those that nobody has deleted yet."""
    return [a for a in attachments if a.metadata.deletion_timestamp is None]


async def delete_live(
    writer: ObjectWriter, attachments: Sequence[VolumeAttachment]
) -> Sequence[KubeError]:
    """Delete what is not being deleted; return what went wrong."""
    return await fan_out(partial(_delete, writer), live(attachments))


def tell_left(control: ControlCluster, machine: Machine, node: str, names: Sequence[str]) -> None:
    """Name what is still attached to the Node, and is waited for no longer."""
    shown = first_few(names, _NAMED, separator=", ")
    note = f"Volumes are still attached to node {node}: {shown}"
    control.tell(machine, EventType.WARNING, "VolumesLeftAttached", note)


async def _delete(writer: ObjectWriter, attachment: VolumeAttachment) -> None:
    meta = attachment.metadata
    try:
        await writer.delete(VOLUME_ATTACHMENTS, meta.name, uid=meta.uid)
    except (NotFound, Conflict):
        return  # gone, or another one of that name
