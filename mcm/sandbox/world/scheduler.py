"""The default scheduler, in small: taints, selectors, requests, volumes; least loaded Node wins."""

from __future__ import annotations

import re
from typing import ClassVar, final

from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.client.client import Client
from mcm.client.errors import Conflict, NotFound
from mcm.client.requests import PatchType
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.volumes import claim_keys
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.binding import Binder
from mcm.sandbox.world.kinds import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from mcm.sandbox.world.owned_pods import BY_NODE
from mcm.sandbox.world.placement import Candidate, place
from mcm.sandbox.world.storage.scheduler_view import SchedulerView
from mcm.sandbox.world.storage.scheduling import VolumeNeeds

SCHEDULER_NAME = "default-scheduler"


@final
class Scheduler(Actor):
    """Keyed by pod; one worker, so that each decision knows of the one before it.

    A pod that fits nowhere is tried again when a Node, the room on one, or storage has changed. A
    pod whose claims wait for it gets its Node when they are bound: for that Node, if it still fits.
    """

    name = "scheduler"
    workers: ClassVar[int] = 1

    def __init__(
        self, client: Client, binder: Binder, mirror: InformerFactory, *, clock: Clock
    ) -> None:
        super().__init__(client, mirror, clock=clock)
        self._binder = binder
        self._nodes = mirror.store(NODES)
        self._pods = mirror.store(PODS)
        # Bound by us, not yet seen so: pod key to (uid, Node).
        self._assumed: dict[str, tuple[str, str]] = {}
        self._homeless: dict[str, None] = {}
        self._storage = SchedulerView(mirror, self._writer)
        # Pod key to the (uid, Node) that its claims are being bound for.
        self._chosen: dict[str, tuple[str, str]] = {}
        mirror.informer(NODES).add_handler(self._on_node)
        mirror.informer(PODS).add_handler(self._on_pod)
        mirror.informer(PERSISTENT_VOLUME_CLAIMS).add_handler(self._on_claim)
        mirror.informer(PERSISTENT_VOLUMES).add_handler(self._on_volume)
        mirror.informer(STORAGE_CLASSES).add_handler(self._on_class)

    # ---- what an event concerns -----------------------------------------------------------------

    def _on_pod(self, change: Change[Pod]) -> None:
        key = change.object.metadata.key
        pod = change.new
        if pod is None or pod.spec.node_name:
            self._assumed.pop(key, None)
            self._chosen.pop(key, None)
        if pod is not None and _wants_node(pod):
            self._queue.add(key)
        else:
            self._homeless.pop(key, None)
        if pod is None or not pod.active:
            self._retry_homeless()

    def _on_node(self, change: Change[Node]) -> None:
        if change.new is not None:
            self._retry_homeless()

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        for pod in self._storage.users(change.object.metadata.key):
            if _wants_node(pod):
                self._queue.add(pod.metadata.key)

    def _on_volume(self, change: Change[PersistentVolume]) -> None:
        """Of one that is bound the claim's event tells."""
        if change.new is None or change.new.spec.claim_ref is None:
            self._retry_homeless()

    def _on_class(self, change: Change[StorageClass]) -> None:
        if change.new is not None:
            self._retry_homeless()

    def _retry_homeless(self) -> None:
        for key in self._homeless:
            self._queue.add(key)

    # ---- one pod --------------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> Outcome:
        pod = self._pods.get(key)
        if pod is None or not _wants_node(pod) or self._is_assumed(pod):
            return DONE
        self._homeless.pop(key, None)
        needs = self._storage.needs(pod, is_placed=self._is_placed)
        preferred = self._preferred(pod, needs)
        if needs.is_prepared_for(preferred) and preferred in self._nodes:
            self._homeless[key] = None
            return DONE  # the claims' events bring it back
        placement = place(pod, self._candidates(pod), needs, preferred)
        try:
            if not placement.node_name:
                self._homeless[key] = None
                await self._tell(pod, placement.message)
            elif needs.unbound:
                await self._bind_claims(pod, needs, placement.node_name)
            else:
                await self._bind(pod, placement.node_name)
        except (NotFound, Conflict):
            pass  # gone, going or bound by another: its event tells
        return DONE

    def _candidates(self, wanting: Pod) -> list[Candidate]:
        """Pods whose claims are being bound for a Node take their room there already."""
        expected: dict[str, list[Pod]] = {}
        for key, (uid, node_name) in (self._chosen | self._assumed).items():
            pod = self._pods.get(key)
            if pod is not None and pod.metadata.uid == uid != wanting.metadata.uid:
                expected.setdefault(node_name, []).append(pod)
        return [
            Candidate(node, [*self._running_on(node), *expected.get(node.metadata.name, ())])
            for node in self._nodes.list()
        ]

    def _running_on(self, node: Node) -> list[Pod]:
        return [p for p in self._pods.by_index(BY_NODE, node.metadata.name) if not p.finished]

    def _is_assumed(self, pod: Pod) -> bool:
        uid, _ = self._assumed.get(pod.metadata.key, ("", ""))
        return uid == pod.metadata.uid

    def _is_placed(self, pod: Pod) -> bool:
        return bool(pod.spec.node_name) or self._is_assumed(pod)

    def _preferred(self, pod: Pod, needs: VolumeNeeds) -> str:
        uid, node_name = self._chosen.get(pod.metadata.key, ("", ""))
        return node_name if uid == pod.metadata.uid else needs.selected

    async def _bind_claims(self, pod: Pod, needs: VolumeNeeds, node_name: str) -> None:
        """The claims' events bring the pod back."""
        self._homeless[pod.metadata.key] = None
        node = self._nodes.get(node_name)
        if node is not None:
            self._chosen[pod.metadata.key] = (pod.metadata.uid, node_name)
            await self._storage.choose(needs, node)

    async def _bind(self, pod: Pod, node_name: str) -> None:
        self._assumed[pod.metadata.key] = (pod.metadata.uid, node_name)
        try:
            await self._binder.bind(pod, node_name)
        except BaseException:
            self._assumed.pop(pod.metadata.key, None)
            raise

    async def _tell(self, pod: Pod, message: str) -> None:
        """Write the condition once; the message may age, rewriting it would cost a write a Node. A
        pod with claims is told what else is lacking: it is somebody's turn."""
        told = [c for c in pod.status.conditions if c.type == "PodScheduled"]
        if told and told[0].status == "False":
            same = _reasons(told[0].message) == _reasons(message)
            if same or not claim_keys(pod):
                return
        condition: JSONObject = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        await self._writer.patch(
            PODS,
            pod.metadata.name,
            {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}},
            namespace=pod.metadata.namespace,
            subresource="status",
            patch_type=PatchType.STRATEGIC,
        )


def _reasons(message: str) -> str:
    """A message but for how many Nodes it is about."""
    return re.sub(r"\d+", "", message)


def _wants_node(pod: Pod) -> bool:
    ours = pod.spec.scheduler_name in ("", SCHEDULER_NAME)
    return ours and pod.active and not pod.spec.node_name
