"""Deployments: a ReplicaSet for each template, and pods led over from the old to the new."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import final

import msgspec

from mcm.api.meta import JSONObject
from mcm.client.client import Client
from mcm.client.errors import NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.deployment_status import seconds_to_deadline, status_of
from mcm.sandbox.world.kinds import (
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    Deployment,
    Pod,
    PodTemplate,
    ReplicaSet,
)
from mcm.sandbox.world.owned_pods import BY_OWNER, owner_reference, template_hash
from mcm.sandbox.world.replica_sets import explicit
from mcm.sandbox.world.rollouts import next_sizes

LABEL_HASH = "pod-template-hash"
ANNOTATION_REVISION = "deployment.kubernetes.io/revision"


@final
class Deployments(Actor):
    """Keyed by Deployment."""

    name = "deployment-controller"

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        super().__init__(client, mirror, clock=clock)
        self._deployments = mirror.store(DEPLOYMENTS)
        self._sets = mirror.store(REPLICA_SETS)
        self._pods = mirror.store(PODS)
        mirror.informer(DEPLOYMENTS).add_handler(self._on_deployment)
        mirror.informer(REPLICA_SETS).add_handler(self._on_set)
        mirror.informer(PODS).add_handler(self._on_pod)

    # ---- what an event concerns -----------------------------------------------------------------

    def _on_deployment(self, change: Change[Deployment]) -> None:
        self._queue.add(change.object.metadata.key)

    def _on_set(self, change: Change[ReplicaSet]) -> None:
        meta = change.object.metadata
        ref = meta.controller_ref()
        if ref is not None and ref.kind == DEPLOYMENTS.kind:
            self._queue.add(f"{meta.namespace}/{ref.name}")

    def _on_pod(self, change: Change[Pod]) -> None:
        """A Recreate waits for the last old pod to be gone."""
        ref = change.object.metadata.controller_ref()
        if change.new is not None or ref is None:
            return
        owner = self._sets.get(f"{change.object.metadata.namespace}/{ref.name}")
        if owner is not None:
            self._on_set(Change(None, owner))

    # ---- one Deployment -------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> Outcome:
        deployment = self._deployments.get(key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return DONE
        new, old = self._sets_of(deployment)
        if not deployment.spec.paused:
            new = await self._make_current(deployment, new, old)
        await self._roll(deployment, new, old)
        await self._forget(deployment, old)
        new, old = self._sets_of(deployment)
        now = self._clock.now()
        status = status_of(deployment, new, old, now)
        await self._report(deployment, status, new)
        left = seconds_to_deadline(deployment, status, now)
        return Outcome(after=left, reason="progress deadline")

    def _sets_of(self, deployment: Deployment) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
        """Return the set of the current template, and the others, oldest revision first."""
        wanted = template_hash(deployment.spec.template)
        sets = self._sets.by_index(BY_OWNER, deployment.metadata.uid)
        new = next((s for s in sets if s.metadata.labels.get(LABEL_HASH) == wanted), None)
        return new, sorted((s for s in sets if s is not new), key=_revision)

    async def _make_current(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]
    ) -> ReplicaSet:
        """Create the set of the current template, or give an old one back the newest revision."""
        newest = max(map(_revision, old), default=0)
        if new is None:
            manifest = _manifest(deployment, revision=newest + 1)
            namespace = deployment.metadata.namespace
            return await self._writer.create(REPLICA_SETS, manifest, namespace=namespace)
        changes: JSONObject = {}
        if _revision(new) <= newest:
            changes["metadata"] = {"annotations": {ANNOTATION_REVISION: str(newest + 1)}}
        if new.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
            changes["spec"] = {"minReadySeconds": deployment.spec.min_ready_seconds}
        return await self._patch_set(new, changes) if changes else new

    async def _roll(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]
    ) -> None:
        left = sum(len(self._pods.by_index(BY_OWNER, s.metadata.uid)) for s in old)
        sets = {s.metadata.name: s for s in (*old, *([new] if new is not None else []))}
        for name, size in next_sizes(deployment, new, old, old_pods=left).items():
            await self._patch_set(sets[name], {"spec": {"replicas": size}})

    async def _patch_set(self, replica_set: ReplicaSet, patch: JSONObject) -> ReplicaSet:
        """A Conflict or NotFound is the caller's: it means a newer state to decide on."""
        metadata = patch.get("metadata")
        precondition = {"uid": replica_set.metadata.uid}
        merged = {**(metadata if isinstance(metadata, dict) else {}), **precondition}
        return await self._writer.patch(
            REPLICA_SETS,
            replica_set.metadata.name,
            {**patch, "metadata": merged},
            namespace=replica_set.metadata.namespace,
        )

    async def _forget(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        """Delete empty sets beyond what is to be remembered, oldest first."""
        empty = [s for s in old if not (s.spec.replicas or s.status.replicas)]
        for replica_set in empty[: max(0, len(empty) - deployment.spec.revision_history_limit)]:
            with suppress(NotFound):
                await self._writer.delete(
                    REPLICA_SETS,
                    replica_set.metadata.name,
                    namespace=replica_set.metadata.namespace,
                    uid=replica_set.metadata.uid,
                )

    async def _report(
        self, deployment: Deployment, status: msgspec.Struct, new: ReplicaSet | None
    ) -> None:
        meta = deployment.metadata
        revision = new.metadata.annotations.get(ANNOTATION_REVISION, "") if new else ""
        if revision and meta.annotations.get(ANNOTATION_REVISION) != revision:
            patch = {"uid": meta.uid, "annotations": {ANNOTATION_REVISION: revision}}
            await self._writer.patch(
                DEPLOYMENTS, meta.name, {"metadata": patch}, namespace=meta.namespace
            )
        if status != deployment.status:
            await self._writer.patch(
                DEPLOYMENTS,
                meta.name,
                {"metadata": {"uid": meta.uid}, "status": explicit(status)},
                namespace=meta.namespace,
                subresource="status",
            )


def _revision(replica_set: ReplicaSet) -> int:
    text = replica_set.metadata.annotations.get(ANNOTATION_REVISION, "")
    return int(text) if text.isdecimal() else 0


def _manifest(deployment: Deployment, *, revision: int) -> JSONObject:
    """Return the set of the current template, as yet without pods."""
    hashed = {LABEL_HASH: template_hash(deployment.spec.template)}
    template = PodTemplate.read(deployment.spec.template)
    labels = {**template.metadata.labels, **hashed}
    metadata = deployment.spec.template.get("metadata")
    selector = msgspec.to_builtins(deployment.spec.selector) if deployment.spec.selector else {}
    return {
        "metadata": {
            "name": f"{deployment.metadata.name}-{hashed[LABEL_HASH]}",
            "labels": labels,
            "annotations": {ANNOTATION_REVISION: str(revision)},
            "ownerReferences": [owner_reference(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": 0,
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": {
                **selector,
                "matchLabels": {**selector.get("matchLabels", {}), **hashed},
            },
            "template": {
                **deployment.spec.template,
                "metadata": {
                    **(metadata if isinstance(metadata, dict) else {}),
                    "labels": labels,
                },
            },
        },
    }
