"""Which deletions a change of attachments or of a Node's volumes lets go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcm.api.core import Node, VolumeAttachment
from mcm.api.machine import Machine
from mcm.controllers.indexes import machines_on
from mcm.controllers.machine.deletion.steps import DeletionStep, step_of
from mcm.informers import Change, Store

_STEPS: Final = (DeletionStep.DETACH_VOLUMES, DeletionStep.DELETE_NODE)


def of_attachment(change: Change[VolumeAttachment], machines: Store[Machine]) -> Iterator[str]:
    """Yield the machine that waits for the attachment to its Node to go."""
    if not change.resync:
        yield from _detaching(change.object.spec.node_name, machines)


def of_node_volumes(change: Change[Node], machines: Store[Machine]) -> Iterator[str]:
    """Yield the machine that waits for the Node's volumes to go, if they changed."""
    old, new = change.old, change.new
    if change.resync or old is None or new is None:
        return
    if old.status.volumes_attached != new.status.volumes_attached:
        yield from _detaching(new.metadata.name, machines)


def _detaching(node_name: str, machines: Store[Machine]) -> Iterator[str]:
    for machine in machines_on(machines, node_name):
        if step_of(machine) in _STEPS:
            yield machine.metadata.key
