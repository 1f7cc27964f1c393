"""Attachments for the volumes that a Node's pods need, and their end when none needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import ClassVar, final

from mcm.client.client import Client
from mcm.client.errors import AlreadyExists, Conflict, NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventSink
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.volumes import claim_keys
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.kinds import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    VolumeAttachment,
)
from mcm.sandbox.world.owned_pods import BY_NODE
from mcm.sandbox.world.storage.attachments import (
    Decision,
    Held,
    Wanted,
    attachment_manifest,
    decide,
    finalizer_of,
    listed_on,
    multi_attach_message,
)
from mcm.sandbox.world.storage.indexes import BY_CLAIM, OF_VOLUME, ON_NODE
from mcm.sandbox.world.storage.volume_events import VolumeEvents


@final
class AttachDetach(Actor):
    """Keyed by Node; one worker, so that no two Nodes are given one exclusive volume.

    A volume is first taken off ``volumesAttached``, so that no kubelet mounts it any more, and then
    detached. For how long a volume has been idle is counted since this process first saw it so.
    """

    name = "attachdetach-controller"
    workers: ClassVar[int] = 1

    def __init__(
        self, client: Client, mirror: InformerFactory, *, clock: Clock, events: EventSink
    ) -> None:
        super().__init__(client, mirror, clock=clock)
        self._events = VolumeEvents(events)
        self._nodes = mirror.store(NODES)
        self._pods = mirror.store(PODS)
        self._claims = mirror.store(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = mirror.store(PERSISTENT_VOLUMES)
        self._attachments = mirror.store(VOLUME_ATTACHMENTS)
        # Attachment's UID: since when it is idle (monotonic seconds).
        self._idle_since: dict[str, float] = {}
        # Of Nodes that are gone: what their kubelets said last.
        self._last_mounted: dict[str, frozenset[str]] = {}
        mirror.informer(NODES).add_handler(self._on_node)
        mirror.informer(PODS).add_handler(self._on_pod)
        mirror.informer(PERSISTENT_VOLUME_CLAIMS).add_handler(self._on_claim)
        mirror.informer(PERSISTENT_VOLUMES).add_handler(self._on_volume)
        mirror.informer(VOLUME_ATTACHMENTS).add_handler(self._on_attachment)

    # ---- what an event concerns -----------------------------------------------------------------

    def _on_node(self, change: Change[Node]) -> None:
        old, new = change.old, change.new
        name = change.object.metadata.name
        if new is None and old is not None:
            self._last_mounted[name] = frozenset(old.status.volumes_in_use)
        else:
            self._last_mounted.pop(name, None)
        concerned = new is None or bool(self._attachments.by_index(ON_NODE, name))
        if concerned or (old is None and any(map(claim_keys, self._pods_on(name)))):
            self._queue.add(name)

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.object.spec.node_name and claim_keys(change.object):
            self._queue.add(change.object.spec.node_name)
            if change.new is None or change.new.finished:
                self._events.forget(change.object)

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        self._wake_users(change.object.metadata.key)

    def _on_volume(self, change: Change[PersistentVolume]) -> None:
        if change.new is None:
            for attachment in self._attachments.by_index(OF_VOLUME, change.object.metadata.name):
                self._queue.add(attachment.spec.node_name)
        ref = change.object.spec.claim_ref
        if ref is not None:
            self._wake_users(ref.key)

    def _on_attachment(self, change: Change[VolumeAttachment]) -> None:
        attachment = change.object
        self._queue.add(attachment.spec.node_name)
        if change.new is not None:
            return
        self._idle_since.pop(attachment.metadata.uid, None)
        volume = self._volumes.get(attachment.volume_name)
        if volume is not None and volume.spec.claim_ref is not None:
            self._wake_users(volume.spec.claim_ref.key)

    def _wake_users(self, claim_key: str) -> None:
        for pod in self._pods.by_index(BY_CLAIM, claim_key):
            if pod.spec.node_name:
                self._queue.add(pod.spec.node_name)

    # ---- one Node -------------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> Outcome:
        node = self._nodes.get(key)
        needed = self._needed_on(key)
        attached = self._attachments.by_index(ON_NODE, key)
        if node is None and not attached:
            self._last_mounted.pop(key, None)
            return DONE
        held = [h for a in attached if (h := self._held(a, needed)) is not None]
        present = {h.attachment.volume_name for h in held}
        missing = [v for name, v in needed.items() if name not in present] if node else []
        wanted = [Wanted(volume, self._elsewhere(volume, key)) for volume in missing]
        decision = decide(node, held, wanted, self._mounted_on(key, node, held))
        self._tell(key, decision, held)
        await self._carry_out(key, node, decision)
        return Outcome(after=decision.look_again, reason="a volume that nobody unmounts")

    def _needed_on(self, node_name: str) -> dict[str, PersistentVolume]:
        """Return, by name, the volumes that need attaching and that pods of the Node use."""
        found: dict[str, PersistentVolume] = {}
        for pod in self._pods_on(node_name):
            if pod.finished:
                continue
            for volume in self._volumes_of(pod):
                found[volume.metadata.name] = volume
        return found

    def _pods_on(self, node_name: str) -> Sequence[Pod]:
        return self._pods.by_index(BY_NODE, node_name)

    def _volumes_of(self, pod: Pod) -> Iterator[PersistentVolume]:
        for key in claim_keys(pod):
            claim = self._claims.get(key)
            volume = self._volumes.get(claim.spec.volume_name) if claim is not None else None
            if claim is None or volume is None or not volume.attached_name:
                continue
            ref = volume.spec.claim_ref
            if ref is not None and ref.uid == claim.metadata.uid:
                yield volume

    def _held(
        self, attachment: VolumeAttachment, needed: dict[str, PersistentVolume]
    ) -> Held | None:
        """None for an attachment that is not ours to judge: no driver here has to do with it."""
        volume = self._volumes.get(attachment.volume_name)
        if volume is None and finalizer_of(attachment) not in attachment.metadata.finalizers:
            return None
        name = volume.attached_name if volume is not None else ""
        if volume is not None and not name:
            return None
        uid = attachment.metadata.uid
        if attachment.volume_name in needed:
            self._idle_since.pop(uid, None)
            return Held(attachment, name)
        now = self._clock.monotonic()
        return Held(attachment, name, now - self._idle_since.setdefault(uid, now))

    def _elsewhere(self, volume: PersistentVolume, node_name: str) -> list[str]:
        attachments = self._attachments.by_index(OF_VOLUME, volume.metadata.name)
        return [a.spec.node_name for a in attachments if a.spec.node_name != node_name]

    def _mounted_on(self, name: str, node: Node | None, held: list[Held]) -> frozenset[str]:
        """Of a Node that was gone before this process began, nobody knows: all may be mounted."""
        if node is not None:
            return frozenset(node.status.volumes_in_use)
        return self._last_mounted.get(name, frozenset(h.attached_name for h in held))

    # ---- the acts -------------------------------------------------------------------------------

    async def _carry_out(self, name: str, node: Node | None, decision: Decision) -> None:
        if node is not None and listed_on(node) != decision.listed:
            await self._list(node, decision.listed)
        for attachment in decision.detach:
            with suppress(NotFound, Conflict):
                await self._writer.delete(
                    VOLUME_ATTACHMENTS, attachment.metadata.name, uid=attachment.metadata.uid
                )
        for volume in decision.attach:
            with suppress(AlreadyExists):  # seen in a moment
                await self._writer.create(VOLUME_ATTACHMENTS, attachment_manifest(volume, name))

    async def _list(self, node: Node, names: tuple[str, ...]) -> None:
        status = {"volumesAttached": [{"name": n, "devicePath": ""} for n in names]}
        patch = {"metadata": {"uid": node.metadata.uid}, "status": status}
        with suppress(NotFound):
            await self._writer.patch(NODES, node.metadata.name, patch, subresource="status")

    def _tell(self, name: str, decision: Decision, held: list[Held]) -> None:
        if not held and not decision.blocked:
            return
        pods = [p for p in self._pods_on(name) if not p.finished and claim_keys(p)]
        for pod in pods:
            used = {v.metadata.name for v in self._volumes_of(pod)}
            for one in held:
                if one.attachment.volume_name in used:
                    self._events.attachment(pod, one.attachment)
            for wanted in decision.blocked:
                if wanted.volume.metadata.name in used:
                    self._events.multi_attach(
                        pod, multi_attach_message(wanted, self._users(wanted))
                    )

    def _users(self, wanted: Wanted) -> dict[str, list[str]]:
        ref = wanted.volume.spec.claim_ref
        users: dict[str, list[str]] = {}
        for pod in self._pods.by_index(BY_CLAIM, ref.key) if ref is not None else ():
            if not pod.finished:
                users.setdefault(pod.spec.node_name, []).append(pod.metadata.name)
        return users
