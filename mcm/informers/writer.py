"""Writing so that the next read knows: verbs whose answers go straight into the stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, final

from mcm.api.meta import KubeObject, Resource, T
from mcm.client.errors import NotFound
from mcm.client.requests import Call
from mcm.client.transport import Response
from mcm.client.verbs import ObjectWriter
from mcm.informers.authorship import Author, holds_nothing_else
from mcm.informers.store import Store

R = TypeVar("R")


class StoresHolding(Protocol):
    """Finds the stores in whose scope an object of ``namespace`` falls."""

    def __call__(self, resource: Resource[T], namespace: str) -> Iterable[Store[T]]: ...


@final
class Writer(ObjectWriter):
    """The client's mutating verbs, same signatures, same errors.

    When a call returns, every store that mirrors the object holds the answer (or something newer)
    and its handlers have been called. No retries: a Conflict is the caller's. An eviction's answer
    holds no pod: its end comes with the watch. Changes bear the name of their ``author``, if they
    hold nothing but what that one wrote.
    """

    def __init__(
        self, client: ObjectWriter, stores: StoresHolding, *, author: Author | None = None
    ) -> None:
        self._client = client
        self._stores = stores
        self._author = author or (lambda: "")
        self.field_manager = client.field_manager

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        """Have ``call`` carried out, and let the stores know what came of it."""
        resource = call.resource
        if resource is None or call.subresource not in ("", "status"):
            return await self._client.perform(call, read)  # another kind of object: a Scale, say
        key = _key(resource, call.namespace, call.name)
        uids = {call.uid} if call.uid else self._uids(resource, call.namespace, key)
        try:
            answer = await self._client.perform(call, read)
        except NotFound:
            if not call.subresource:
                self._gone(resource, call.namespace, key, uids)
            raise
        if answer is None:
            self._gone(resource, call.namespace, key, uids, author=self._author())
        elif isinstance(answer, resource.type):
            self._observe(resource, call, answer)
        return answer

    def _observe(self, resource: Resource[KubeObject], call: Call, answer: KubeObject) -> None:
        author = self._author()
        finished = call.verb != "DELETE" and _finished(resource, answer)
        for store in self._stores(resource, answer.metadata.namespace):
            if finished:
                store.observe_deleted(answer, author=author)
                continue
            known = store.get(answer.metadata.key) if author else None
            own = known is not None and holds_nothing_else(known, call, answer)
            store.observe(answer, author=author if own else "")

    def _uids(self, resource: Resource[KubeObject], namespace: str, key: str) -> set[str]:
        """The UIDs the stores know under a key: asked before a request, as an object that is
        made while the request is under way is not the one the answer speaks of."""
        known = (store.get(key) for store in self._stores(resource, namespace))
        return {obj.metadata.uid for obj in known if obj is not None}

    def _gone(
        self,
        resource: Resource[KubeObject],
        namespace: str,
        key: str,
        uids: set[str],
        *,
        author: str = "",
    ) -> None:
        for store in self._stores(resource, namespace):
            known = store.get(key)
            if known is not None and known.metadata.uid in uids:
                store.observe_deleted(known, author=author)


def _key(resource: Resource[KubeObject], namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace and resource.namespaced else name


def _finished(resource: Resource[KubeObject], answer: KubeObject) -> bool:
    """Whether an answer shows an object that its last finalizer held back, and no longer does.

    Pods are the exception: those end when their kubelet says so, finalizers or not.
    """
    meta = answer.metadata
    if resource.kind == "Pod" and not resource.group:
        return False
    return meta.deletion_timestamp is not None and not meta.finalizers
