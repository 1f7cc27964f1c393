"""The mirrors of a drain by hand: of one Node, its pods, and what these pods have to do with.

Budgets, claims and the pods that may come instead are mirrored in the namespaces of the Node's
pods, the latter where a pod uses claims or asks for a successor first; volumes and attachments,
which have no namespace, once a pod uses claims. Nothing else is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast, final

from mcm.api.core import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    VOLUME_ATTACHMENTS,
    Pod,
    PodDisruptionBudget,
)
from mcm.api.meta import KubeObject, Resource, T
from mcm.client.verbs import ObjectReader
from mcm.clock import Clock
from mcm.drain.budgets import Disruptions
from mcm.drain.observation import DrainStores, Staleness
from mcm.drain.selection import asked_surge
from mcm.drain.surge import Surges
from mcm.drain.volumes import claim_keys_of
from mcm.informers import Change, Informer, ReflectorOptions, Store

_OPTIONS: Final = ReflectorOptions(backoff_cap=5.0)
"""Somebody is waiting: begin with the newest state, and look soon whether a server is back."""


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a collection, and the store that holds its objects beside those of other parts."""

    resource: Resource[KubeObject]
    store: Store[KubeObject]
    namespace: str = ""
    field_selector: str = ""

    @property
    def key(self) -> _Key:
        return self.resource.name, self.namespace, self.field_selector


_Key: TypeAlias = tuple[str, str, str]


def _part(
    resource: Resource[T], store: Store[T], *, namespace: str = "", field_selector: str = ""
) -> _Part:
    return _Part(resource, cast("Store[KubeObject]", store), namespace, field_selector)


@final
class Mirrors:
    """``changed`` is called whenever anything that is mirrored is another. ``group`` owns the
    tasks: who leaves it cancels them by :meth:`stop` first."""

    def __init__(
        self,
        client: ObjectReader,
        node_name: str,
        *,
        clock: Clock,
        changed: Callable[[], None],
        group: asyncio.TaskGroup,
    ) -> None:
        self._client = client
        self._clock = clock
        self._changed = changed
        self._group = group
        self._node_name = node_name
        self._tasks: list[asyncio.Task[None]] = []
        self._informers: dict[_Key, Informer[KubeObject]] = {}
        self.stores = DrainStores(
            nodes=Store(),
            pods=Store(),
            budgets=Store(),
            claims=Store(),
            volumes=Store(),
            attachments=Store(),
        )
        self.staleness = Staleness(
            pods=self._why_pods_are_stale,
            budgets=lambda: self._why_stale(POD_DISRUPTION_BUDGETS),
            volumes=lambda: self._why_stale(
                NODES, PODS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS
            ),
        )
        self._disruptions: Disruptions | None = None
        self._surges: Surges | None = None

    def tell(self, disruptions: Disruptions, surges: Surges) -> None:
        """Let them know what budgets and pods show, from now on."""
        self._disruptions = disruptions
        self._surges = surges

    async def start(self) -> None:
        """Return once all is mirrored. Raises what the client raises where it is not allowed."""
        name = self._node_name
        here = _part(PODS, self.stores.pods, field_selector=f"spec.nodeName={name}")
        node = _part(NODES, self.stores.nodes, field_selector=f"metadata.name={name}")
        await self._begun(node)
        await self._begun(here)
        for part in self._lacking():
            await self._begun(part)

    def widen(self) -> None:
        """Begin to mirror what pods have to do with that came meanwhile. Until that is mirrored,
        it counts as stale."""
        for part in self._lacking():
            self._begin(part)

    def _lacking(self) -> Sequence[_Part]:
        """Return what the pods have to do with, and is not mirrored."""
        pods = [p for p in self.stores.pods.list() if p.spec.node_name == self._node_name]
        wanted: list[_Part] = [
            _part(POD_DISRUPTION_BUDGETS, self.stores.budgets, namespace=namespace)
            for namespace in sorted({pod.metadata.namespace for pod in pods})
        ]
        with_claims = sorted({pod.metadata.namespace for pod in pods if claim_keys_of(pod)})
        if with_claims:
            wanted.append(_part(PERSISTENT_VOLUMES, self.stores.volumes))
            wanted.append(_part(VOLUME_ATTACHMENTS, self.stores.attachments))
        for namespace in with_claims:
            claims = self.stores.claims
            wanted.append(_part(PERSISTENT_VOLUME_CLAIMS, claims, namespace=namespace))
        with_successors = {pod.metadata.namespace for pod in pods if asked_surge(pod) is not None}
        wanted += [
            _part(PODS, self.stores.pods, namespace=namespace)
            for namespace in sorted(with_successors.union(with_claims))
        ]
        return [part for part in wanted if part.key not in self._informers]

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    # ---- inside ----------------------------------------------------------------------------------

    async def _begun(self, part: _Part) -> None:
        """Begin, and wait until all of it is there."""
        await self._client.list_page(
            part.resource, namespace=part.namespace, field_selector=part.field_selector, limit=1
        )  # a mirror that is refused would ask again for ever
        await self._begin(part).wait_synced()

    def _begin(self, part: _Part) -> Informer[KubeObject]:
        informer = Informer(
            self._client,
            part.resource,
            clock=self._clock,
            namespace=part.namespace,
            field_selector=part.field_selector,
            options=_OPTIONS,
        )
        informer.add_handler(lambda change: self._take(part.store, change))
        informer.when_current(self._changed)
        task = self._group.create_task(informer.run(), name=f"informer {part.resource.name}")
        self._tasks.append(task)
        self._informers[part.key] = informer
        return informer

    def _take(self, store: Store[T], change: Change[T]) -> None:
        """Whoever hears first that an object is gone is right: no two mirrors tell of its rise
        again, as no UID comes back."""
        if change.new is not None:
            store.put(change.new)
        elif change.old is not None:
            store.remove_own(change.old)
        self._tell(change.object, gone=change.new is None)
        self._changed()

    def _tell(self, obj: KubeObject, *, gone: bool) -> None:
        if self._disruptions is None:
            return
        if isinstance(obj, Pod) and self._surges is not None:
            self._surges.pod_changed(obj)
        if isinstance(obj, Pod):
            self._disruptions.pod_changed(obj.metadata.uid)
        elif isinstance(obj, PodDisruptionBudget):
            self._disruptions.budget_changed(obj.metadata.key, None if gone else obj)

    def _why_pods_are_stale(self) -> str:
        """Those on the Node: who comes instead is asked for with the volumes."""
        return self._why(i for key, i in self._informers.items() if key[0] == PODS.name and key[2])

    def _why_stale(self, *resources: Resource[KubeObject]) -> str:
        names = {resource.name for resource in resources}
        return self._why(i for key, i in self._informers.items() if key[0] in names)

    def _why(self, informers: Iterable[Informer[KubeObject]]) -> str:
        now = self._clock.monotonic()
        judged = (informer.freshness(now) for informer in informers)
        return next((f.why for f in judged if not f.current), "")
