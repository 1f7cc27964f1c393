"""All informers of one cluster: made once a resource, run and waited for together."""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast, final

from prometheus_client import CollectorRegistry

from mcm.api.meta import KubeObject, Resource, T
from mcm.client.verbs import ObjectClient, ObjectWriter
from mcm.clock import Clock
from mcm.informers.authorship import Author
from mcm.informers.informer import Informer, InformerStatus, until_one_ends
from mcm.informers.listwatch import ReflectorOptions
from mcm.informers.metrics import collector_of
from mcm.informers.store import Store
from mcm.informers.writer import Writer


@final
class InformerFactory:
    """``namespace`` is where namespaced resources are mirrored unless told otherwise; empty: all.

    ``name`` labels the metrics, so that several clusters can share a ``registry``. The writer
    asks ``author`` who writes, and is handed out as ``guarded`` returns it. The client is not
    closed here.
    """

    def __init__(
        self,
        client: ObjectClient,
        *,
        clock: Clock,
        namespace: str = "",
        registry: CollectorRegistry | None = None,
        name: str = "",
        options: ReflectorOptions | None = None,
        randomness: random_module.Random | None = None,
        guarded: Callable[[Writer], ObjectWriter] | None = None,
        author: Author | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._options = options or ReflectorOptions()
        self._random = randomness or random_module.Random()
        self._informers: dict[tuple[str, str], Informer[KubeObject]] = {}
        self._running = False
        writer = Writer(client, self.stores_holding, author=author)
        self._writer: ObjectWriter = guarded(writer) if guarded is not None else writer
        self.name = name
        if registry is not None:
            collector_of(registry).add(name, self.informers, clock=clock)

    @property
    def writer(self) -> ObjectWriter:
        """The client's verbs for this cluster, whose answers go into the stores at once."""
        return self._writer

    def informer(self, resource: Resource[T], *, namespace: str | None = None) -> Informer[T]:
        """Return the informer of ``resource``, the same one each time.

        Raises RuntimeError if it does not exist yet and ``run`` was called.
        """
        scope = self._scope(resource, namespace)
        known = self._informers.get((resource.name, scope))
        if known is None:
            known = self._make(resource, scope)
        return cast("Informer[T]", known)

    def store(self, resource: Resource[T], *, namespace: str | None = None) -> Store[T]:
        """Return the store of ``informer(resource)``."""
        return self.informer(resource, namespace=namespace).store

    def informers(self) -> Sequence[Informer[KubeObject]]:
        return tuple(self._informers.values())

    def stores_holding(self, resource: Resource[T], namespace: str) -> Iterator[Store[T]]:
        """Yield the existing stores in whose scope an object in ``namespace`` falls."""
        scopes = {"", namespace} if resource.namespaced else {""}
        for scope in sorted(scopes):
            found = self._informers.get((resource.name, scope))
            if found is not None:
                yield cast("Informer[T]", found).store

    async def run(self) -> None:
        """Mirror everything asked for, until cancelled. May be called once. Raises MirrorEnded, or
        a group of what was raised, if a mirror ended by itself."""
        if self._running:
            raise RuntimeError("the informers were run before")
        self._running = True
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(informer.run(), name=f"informer {informer.resource.name}")
                for informer in self._informers.values()
            ]
            await until_one_ends(tasks)

    async def wait_synced(self) -> None:
        """Return when every handler of every informer has seen the first list."""
        for informer in self.informers():
            await informer.wait_synced()

    def status(self) -> Sequence[InformerStatus]:
        return tuple(informer.status() for informer in self._informers.values())

    def unready(self) -> Mapping[str, str]:
        """Return why mirrors of this cluster cannot be relied on now, by resource."""
        now = self._clock.monotonic()
        return {
            self._named(informer.resource.name): why
            for informer in self.informers()
            if (why := informer.unready(now))
        }

    def problems(self) -> Mapping[str, str]:
        """Return why this cluster is taken to be out of reach, by resource: patient, for what
        follows from it (machines are frozen) is more than that a probe fails."""
        found: dict[str, str] = {}
        for status in self.status():
            where = self._named(status.resource)
            if not status.synced:
                found[where] = "the first list is not complete"
            elif not status.healthy:
                found[where] = f"the server has been silent for {status.silence:.0f} s"
        return found

    def mirrored(self) -> Sequence[str]:
        """Return the names that :meth:`unready` calls the mirrored resources by."""
        return [self._named(informer.resource.name) for informer in self.informers()]

    def _named(self, resource: str) -> str:
        return f"{self.name}/{resource}" if self.name else resource

    def _scope(self, resource: Resource[T], namespace: str | None) -> str:
        if not resource.namespaced:
            return ""
        return self._namespace if namespace is None else namespace

    def _make(self, resource: Resource[T], scope: str) -> Informer[KubeObject]:
        if self._running:
            raise RuntimeError(f"no informer of {resource.name} was asked for before run()")
        made = Informer(
            self._client,
            resource,
            clock=self._clock,
            namespace=scope,
            options=self._options,
            randomness=random_module.Random(self._random.random()),
        )
        self._informers[resource.name, scope] = cast("Informer[KubeObject]", made)
        return cast("Informer[KubeObject]", made)
