"""Keeps the numbered pods of StatefulSets, their claims, and the revisions of their templates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import final

from mcm.client.client import Client
from mcm.client.errors import AlreadyExists, Conflict, NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.kinds import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    PersistentVolumeClaim,
    Pod,
)
from mcm.sandbox.world.owned_pods import BY_OWNER
from mcm.sandbox.world.replica_sets import explicit
from mcm.sandbox.world.stateful_sets.identity import (
    by_ordinal,
    claim_manifests,
    owner_of,
    pod_manifest,
    revision_of,
)
from mcm.sandbox.world.stateful_sets.kinds import (
    CONTROLLER_REVISIONS,
    STATEFUL_SETS,
    ControllerRevision,
    StatefulSet,
    StatefulSetStatus,
)
from mcm.sandbox.world.stateful_sets.plan import Revisions, plan, wanted_ordinals
from mcm.sandbox.world.stateful_sets.progress import status_of
from mcm.sandbox.world.stateful_sets.revisions import (
    next_number,
    revision_manifest,
    revision_name,
    template_of,
    to_forget,
)


@final
class StatefulSets(Actor):
    """Keyed by StatefulSet. A pod of a wanted name that is not the set's own is waited for."""

    name = "statefulset-controller"

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        super().__init__(client, mirror, clock=clock)
        self._sets = mirror.store(STATEFUL_SETS)
        self._revisions = mirror.store(CONTROLLER_REVISIONS)
        self._pods = mirror.store(PODS)
        self._claims = mirror.store(PERSISTENT_VOLUME_CLAIMS)
        mirror.informer(STATEFUL_SETS).add_handler(self._on_set)
        mirror.informer(CONTROLLER_REVISIONS).add_handler(self._on_revision)
        mirror.informer(PODS).add_handler(self._on_pod)
        mirror.informer(PERSISTENT_VOLUME_CLAIMS).add_handler(self._on_claim)

    # ---- what an event concerns -----------------------------------------------------------------

    def _on_set(self, change: Change[StatefulSet]) -> None:
        self._queue.add(change.object.metadata.key)

    def _on_revision(self, change: Change[ControllerRevision]) -> None:
        """Only one that somebody took away is missed."""
        meta = change.object.metadata
        ref = meta.controller_ref()
        if change.new is None and ref is not None and ref.kind == STATEFUL_SETS.kind:
            self._queue.add(f"{meta.namespace}/{ref.name}")

    def _on_pod(self, change: Change[Pod]) -> None:
        meta = change.object.metadata
        key = f"{meta.namespace}/{owner_of(meta.name)}"
        if key in self._sets:
            self._queue.add(key)

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        """A claim that is gone may be awaited, or missed by a pod that is not running yet."""
        meta = change.object.metadata
        key = f"{meta.namespace}/{owner_of(meta.name)}"
        for stateful_set in self._sets.list(meta.namespace) if change.new is None else ():
            if key.endswith(f"-{stateful_set.metadata.name}"):
                self._queue.add(stateful_set.metadata.key)

    # ---- one StatefulSet ------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> Outcome:
        stateful_set = self._sets.get(key)
        if stateful_set is None or stateful_set.metadata.deletion_timestamp is not None:
            return DONE
        update = await self._current_template(stateful_set)
        current = stateful_set.status.current_revision or update
        revisions = Revisions(current, update)
        pods = by_ordinal(stateful_set, self._pods_of(stateful_set))
        steps = plan(stateful_set, pods, revisions, self._clock.now())
        await self._claim_for_pending(stateful_set)
        for ordinal, revision in steps.make:
            await self._make(stateful_set, ordinal, revision)
        for pod in steps.end:
            await self._delete(pod)
        await self._forget(stateful_set, revisions)
        now = self._clock.now()
        status = status_of(stateful_set, self._pods_of(stateful_set), revisions, now)
        await self._report(stateful_set, status)
        return Outcome(after=steps.wait, reason="until a pod is available")

    def _pods_of(self, stateful_set: StatefulSet) -> Sequence[Pod]:
        return self._pods.by_index(BY_OWNER, stateful_set.metadata.uid)

    # ---- revisions ------------------------------------------------------------------------------

    def _known(self, stateful_set: StatefulSet) -> Collection[ControllerRevision]:
        return self._revisions.by_index(BY_OWNER, stateful_set.metadata.uid)

    async def _current_template(self, stateful_set: StatefulSet) -> str:
        """Return the name of the set's template, kept and the newest of all."""
        known, name = self._known(stateful_set), revision_name(stateful_set)
        kept = next((r for r in known if r.metadata.name == name), None)
        newest = next_number(known)
        namespace = stateful_set.metadata.namespace
        if kept is None:
            manifest = revision_manifest(stateful_set, newest)
            with suppress(AlreadyExists):  # of a set that had this name before, and is collected
                await self._writer.create(CONTROLLER_REVISIONS, manifest, namespace=namespace)
        elif kept.revision < newest - 1:
            patch = {"metadata": {"uid": kept.metadata.uid}, "revision": newest}
            await self._writer.patch(CONTROLLER_REVISIONS, name, patch, namespace=namespace)
        return name

    async def _forget(self, stateful_set: StatefulSet, revisions: Revisions) -> None:
        used = {revision_of(pod) for pod in self._pods_of(stateful_set)}
        used |= {revisions.current, revisions.update}
        limit = stateful_set.spec.revision_history_limit
        for revision in to_forget(self._known(stateful_set), used=used, limit=limit):
            meta = revision.metadata
            with suppress(NotFound):
                await self._writer.delete(
                    CONTROLLER_REVISIONS, meta.name, namespace=meta.namespace, uid=meta.uid
                )

    # ---- pods and claims ------------------------------------------------------------------------

    async def _make(self, stateful_set: StatefulSet, ordinal: int, revision: str) -> None:
        namespace = stateful_set.metadata.namespace
        if not await self._claimed(stateful_set, ordinal):
            return  # the claim's end brings us back
        kept = template_of(self._revisions.get(f"{namespace}/{revision}"))
        if revision == revision_name(stateful_set) or kept is None:
            revision, kept = revision_name(stateful_set), stateful_set.spec.template
        manifest = pod_manifest(stateful_set, ordinal, revision=revision, template=kept)
        with suppress(AlreadyExists):  # somebody else's: its end brings us back
            await self._writer.create(PODS, manifest, namespace=namespace)

    async def _claim_for_pending(self, stateful_set: StatefulSet) -> None:
        """Make claims anew that were taken from pods which have not started yet."""
        pods = by_ordinal(stateful_set, self._pods_of(stateful_set))
        for ordinal in wanted_ordinals(stateful_set):
            pod = pods.get(ordinal)
            if pod is not None and pod.active and pod.status.phase in ("", "Pending"):
                await self._claimed(stateful_set, ordinal)

    async def _claimed(self, stateful_set: StatefulSet, ordinal: int) -> bool:
        """Make the claims of a pod that are missing; tell whether it has them all."""
        namespace, complete = stateful_set.metadata.namespace, True
        for name, manifest in claim_manifests(stateful_set, ordinal).items():
            claim = self._claims.get(f"{namespace}/{name}")
            if claim is None:
                with suppress(AlreadyExists):
                    await self._writer.create(
                        PERSISTENT_VOLUME_CLAIMS, manifest, namespace=namespace
                    )
            elif claim.metadata.deletion_timestamp is not None:
                complete = False
        return complete

    async def _delete(self, pod: Pod) -> None:
        with suppress(NotFound, Conflict):  # somebody else was faster
            await self._writer.delete(
                PODS,
                pod.metadata.name,
                namespace=pod.metadata.namespace,
                uid=pod.metadata.uid,
            )

    # ---- status ---------------------------------------------------------------------------------

    async def _report(self, stateful_set: StatefulSet, status: StatefulSetStatus) -> None:
        if status == stateful_set.status:
            return
        meta = stateful_set.metadata
        with suppress(NotFound):
            await self._writer.patch(
                STATEFUL_SETS,
                meta.name,
                {"metadata": {"uid": meta.uid}, "status": explicit(status)},
                namespace=meta.namespace,
                subresource="status",
            )
