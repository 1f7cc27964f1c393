"""What is to be attached to a Node, and what may be detached from it: pure decisions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from mcm.api.meta import JSONObject
from mcm.api.names import TAINT_OUT_OF_SERVICE
from mcm.sandbox.world.kinds import Node, PersistentVolume, VolumeAttachment

LONGEST_UNMOUNT = 360.0
"""Seconds after which a volume is taken from a Node that is not ready, mounted or not."""


def attachment_name(volume: PersistentVolume, node_name: str) -> str:
    """Return the name that the cluster's controllers give the attachment, whoever makes it."""
    csi = volume.spec.csi
    handle, driver = (csi.volume_handle, csi.driver) if csi is not None else ("", "")
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node_name}'.encode()).hexdigest()}"


def attachment_manifest(volume: PersistentVolume, node_name: str) -> JSONObject:
    return {
        "metadata": {"name": attachment_name(volume, node_name)},
        "spec": {
            "attacher": volume.spec.csi.driver if volume.spec.csi is not None else "",
            "nodeName": node_name,
            "source": {"persistentVolumeName": volume.metadata.name},
        },
    }


def finalizer_of(attachment: VolumeAttachment) -> str:
    """Return the finalizer by which the driver keeps an attachment until it has detached it."""
    return f"external-attacher/{attachment.spec.attacher.replace('.', '-')}"


@final
@dataclass(frozen=True, slots=True)
class Held:
    """An attachment to the Node: the name the Node knows its volume by (empty if the volume is
    gone), and since how many seconds no pod there uses it; None if one does."""

    attachment: VolumeAttachment
    attached_name: str
    idle: float | None = None


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """A volume that pods of the Node wait for, and the Nodes other than this that have it."""

    volume: PersistentVolume
    elsewhere: Sequence[str] = ()

    @property
    def blocked(self) -> bool:
        return self.volume.exclusive and bool(self.elsewhere)


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """``listed`` are the volumes that the Node may mount; ``look_again`` is in seconds."""

    listed: tuple[str, ...] = ()
    detach: tuple[VolumeAttachment, ...] = ()
    attach: tuple[PersistentVolume, ...] = ()
    blocked: tuple[Wanted, ...] = ()
    look_again: float | None = None


def decide(
    node: Node | None, held: Sequence[Held], wanted: Sequence[Wanted], mounted: frozenset[str]
) -> Decision:
    """Say what becomes of a Node's volumes. ``mounted`` is what its kubelet last said it uses;
    ``node`` is None if the Node is gone."""
    patience = _patience(node)
    free = {one.attachment.metadata.uid: _is_free(one, mounted, patience) for one in held}
    waits = [
        patience - one.idle
        for one in held
        if patience and one.idle is not None and not free[one.attachment.metadata.uid]
    ]
    kept = mounted & {*listed_on(node)}
    listed = {
        one.attached_name
        for one in held
        if _may_be_mounted(one, kept, free=free[one.attachment.metadata.uid])
    }
    return Decision(
        listed=tuple(sorted(listed)),
        detach=tuple(
            one.attachment
            for one in held
            if free[one.attachment.metadata.uid] and not one.attachment.terminating
        ),
        attach=tuple(w.volume for w in wanted if not w.blocked),
        blocked=tuple(w for w in wanted if w.blocked),
        look_again=min(waits, default=None),
    )


def _is_free(one: Held, mounted: frozenset[str], patience: float | None) -> bool:
    """Tell whether an attachment may end: nobody needs it, and nobody has it mounted any more, or
    nobody waits for that any longer."""
    if one.idle is None:
        return False
    if one.attached_name not in mounted:
        return True
    return patience is not None and patience <= one.idle


def _may_be_mounted(one: Held, kept: frozenset[str], *, free: bool) -> bool:
    """Tell whether the Node is said to have the volume. What is being detached is not to be mounted
    by the next pod; where detaching failed, the volume is still there.

    ``kept`` is what is mounted and listed. What was taken off the list for the next pod not to
    mount it does not come back on it: that pod's kubelet may have been a moment too fast, and each
    would follow the other for ever."""
    status = one.attachment.status
    if not status.attached or not one.attached_name:
        return False
    if one.idle is None:
        return not one.attachment.terminating or one.attached_name in kept
    return status.detach_error is not None or not free


def _patience(node: Node | None) -> float | None:
    """Return for how many seconds a volume nobody needs is left to a kubelet that has it mounted;
    None: for as long as that takes."""
    if node is None:
        return LONGEST_UNMOUNT
    if any(taint.key == TAINT_OUT_OF_SERVICE for taint in node.spec.taints):
        return 0.0
    return None if node.ready else LONGEST_UNMOUNT


def listed_on(node: Node | None) -> tuple[str, ...]:
    return tuple(sorted(v.name for v in node.status.volumes_attached)) if node is not None else ()


def multi_attach_message(wanted: Wanted, users: Mapping[str, Sequence[str]]) -> str:
    """Say why a volume cannot come; ``users`` are the pods that have it, by Node."""
    pods = [pod for node in wanted.elsewhere for pod in users.get(node, ())]
    start = f'Multi-Attach error for volume "{wanted.volume.metadata.name}" Volume is already'
    if pods:
        return f"{start} used by pod(s) {', '.join(sorted(pods))}"
    return f"{start} exclusively attached to one node and can't be attached to another"
