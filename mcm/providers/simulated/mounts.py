"""The volumes a simulated kubelet waits for, mounts for its pods, and reports to be in use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import final

from mcm.api.core import NODES, Node, Pod
from mcm.client.client import Client
from mcm.client.errors import NotFound
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.pods import BY_NODE, RUNNABLE_PODS, RunnablePod
from mcm.providers.simulated.volumes import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PersistentVolume,
    PersistentVolumeClaim,
    claim_keys,
)

_BY_CLAIM = "claim"


@final
class Mounts:
    """A volume that needs attaching is mounted as soon as the Node is said to have it, and until
    the last of its pods is gone; all others are there at once.

    ``wake_pod`` takes the key of a pod whose volumes may have come, ``wake_node`` the name of a
    Node whose report may be out of date: to be answered with :meth:`report`.
    """

    def __init__(
        self,
        client: Client,
        mirror: InformerFactory,
        *,
        is_alive: Callable[[str], bool],
        wake_pod: Callable[[str], None],
        wake_node: Callable[[str], None],
    ) -> None:
        self._client = client
        self._is_alive = is_alive
        self._wake_pod, self._wake_node = wake_pod, wake_node
        self._nodes = mirror.store(NODES)
        self._pods = mirror.store(RUNNABLE_PODS)
        self._pods.add_index(_BY_CLAIM, claim_keys)
        self._claims = mirror.store(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = mirror.store(PERSISTENT_VOLUMES)
        mirror.informer(NODES).add_handler(self._on_node)
        mirror.informer(RUNNABLE_PODS).add_handler(self._on_pod)
        mirror.informer(PERSISTENT_VOLUME_CLAIMS).add_handler(self._on_claim)
        mirror.informer(PERSISTENT_VOLUMES).add_handler(self._on_volume)

    # ---- what an event concerns -----------------------------------------------------------------

    def _on_node(self, change: Change[Node]) -> None:
        old, new = change.old, change.new
        if new is None or (old and old.status.volumes_attached == new.status.volumes_attached):
            return
        self.wake(new.metadata.name)

    def _on_pod(self, change: Change[RunnablePod]) -> None:
        pod = change.object
        if pod.spec.node_name and claim_keys(pod):
            self._wake_node(pod.spec.node_name)

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        self._wake_users(change.object.metadata.key)

    def _on_volume(self, change: Change[PersistentVolume]) -> None:
        claim = change.object.spec.claim_ref
        if claim is not None:
            self._wake_users(claim.key)

    def _wake_users(self, claim: str) -> None:
        for pod in self._pods.by_index(_BY_CLAIM, claim):
            if pod.spec.node_name:
                self._wake_pod(pod.metadata.key)
                self._wake_node(pod.spec.node_name)

    def wake(self, node_name: str) -> None:
        """Look at a Node and those of its pods that have claims: its kubelet has begun to run, or
        its volumes are others."""
        concerned = [p for p in self._on(node_name) if claim_keys(p)]
        for pod in concerned:
            self._wake_pod(pod.metadata.key)
        node = self._nodes.get(node_name)
        if concerned or (node is not None and node.status.volumes_in_use):
            self._wake_node(node_name)

    # ---- what the kubelet does ------------------------------------------------------------------

    def lacks_volumes(self, pod: Pod) -> bool:
        """Tell whether a pod must wait: a claim is not bound, or its volume not attached."""
        keys = claim_keys(pod)
        if not keys:
            return False
        node = self._nodes.get(pod.spec.node_name)
        attached = {v.name for v in node.status.volumes_attached} if node is not None else set()
        for volume in map(self._volume_of, keys):
            if volume is None or (volume.attached_name and volume.attached_name not in attached):
                return True
        return False

    async def report(self, node_name: str) -> Outcome:
        """Write ``volumesInUse`` if it is not what is mounted; a VM that is off reports nothing."""
        node = self._nodes.get(node_name)
        if node is None or not self._is_alive(node_name):
            return DONE
        used = self._in_use(node)
        if used == node.status.volumes_in_use:
            return DONE
        status = {"volumesInUse": list(used)}
        patch = {"metadata": {"uid": node.metadata.uid}, "status": status}
        with suppress(NotFound):
            answer = await self._client.patch(NODES, node_name, patch, subresource="status")
            self._nodes.observe(answer)
        return DONE

    def _in_use(self, node: Node) -> tuple[str, ...]:
        """A pod that runs keeps what it has, one that waits gets what the Node is said to have."""
        attached = {v.name for v in node.status.volumes_attached}
        kept = attached | {*node.status.volumes_in_use}
        found: set[str] = set()
        for pod in self._on(node.metadata.name):
            if pod.status.phase in ("Succeeded", "Failed"):
                continue
            volumes = map(self._volume_of, claim_keys(pod))
            names = {v.attached_name for v in volumes if v is not None}
            found |= names & (kept if pod.status.phase == "Running" else attached)
        return tuple(sorted(found))

    def _on(self, node_name: str) -> tuple[RunnablePod, ...]:
        return tuple(self._pods.by_index(BY_NODE, node_name))

    def _volume_of(self, claim_key: str) -> PersistentVolume | None:
        claim = self._claims.get(claim_key)
        return self._volumes.get(claim.spec.volume_name) if claim is not None else None
