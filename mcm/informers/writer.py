"""Writing so that the next read knows: verbs whose answers go straight into the stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, final

import msgspec

from mcm.api.meta import Resource, T
from mcm.client.client import PatchType
from mcm.client.errors import NotFound

if TYPE_CHECKING:
    from mcm.client.client import Client
    from mcm.informers.factory import InformerFactory


@final
class Writer:
    """The client's mutating verbs, same signatures, same errors.

    When a call returns, every store of the factory that mirrors the object holds the answer (or
    something newer) and its handlers have been called. No retries: a Conflict is the caller's.
    """

    def __init__(self, client: Client, factory: InformerFactory) -> None:
        self._client = client
        self._factory = factory

    async def create(
        self,
        resource: Resource[T],
        body: Mapping[str, object] | msgspec.Struct,
        *,
        namespace: str = "",
    ) -> T:
        """Create; raises :class:`AlreadyExists` and whatever else the client does."""
        answer = await self._client.create(resource, body, namespace=namespace)
        self._observe(resource, answer)
        return answer

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Mapping[str, object] | Sequence[Mapping[str, object]],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        """Patch; if that took the last finalizer of a terminating object, the stores drop it."""
        before = self._uids(resource, namespace, name)
        try:
            answer = await self._client.patch(
                resource,
                name,
                patch,
                namespace=namespace,
                subresource=subresource,
                patch_type=patch_type,
                field_manager=field_manager,
                force=force,
            )
        except NotFound:
            if not subresource:
                self._gone(resource, namespace, name, before)
            raise
        if subresource not in ("", "status"):
            return answer  # another kind of object: a Scale, say
        if _finished(resource, answer):
            self._observe_deleted(resource, answer)
        else:
            self._observe(resource, answer)
        return answer

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        grace_period_seconds: int | None = None,
    ) -> T | None:
        """Delete; returns the object if it stays for now, None (and the stores drop it) if not."""
        before = {uid} if uid else self._uids(resource, namespace, name)
        try:
            answer = await self._client.delete(
                resource,
                name,
                namespace=namespace,
                uid=uid,
                resource_version=resource_version,
                propagation=propagation,
                grace_period_seconds=grace_period_seconds,
            )
        except NotFound:
            self._gone(resource, namespace, name, before)
            raise
        if answer is None:
            self._gone(resource, namespace, name, before)
        else:
            self._observe(resource, answer)
        return answer

    async def evict(
        self, name: str, *, namespace: str, uid: str = "", grace_period_seconds: int | None = None
    ) -> None:
        """Ask for a pod's eviction. The answer holds no pod: its end comes with the watch."""
        await self._client.evict(
            name, namespace=namespace, uid=uid, grace_period_seconds=grace_period_seconds
        )

    def _observe(self, resource: Resource[T], answer: T) -> None:
        for store in self._factory.stores_holding(resource, answer.metadata.namespace):
            store.observe(answer)

    def _observe_deleted(self, resource: Resource[T], answer: T) -> None:
        for store in self._factory.stores_holding(resource, answer.metadata.namespace):
            store.observe_deleted(answer)

    def _uids(self, resource: Resource[T], namespace: str, name: str) -> set[str]:
        """The UIDs the stores know under a name: asked before a request, as an object that is
        made while the request is under way is not the one the answer speaks of."""
        key = _key(resource, namespace, name)
        known = (s.get(key) for s in self._factory.stores_holding(resource, namespace))
        return {obj.metadata.uid for obj in known if obj is not None}

    def _gone(self, resource: Resource[T], namespace: str, name: str, uids: set[str]) -> None:
        key = _key(resource, namespace, name)
        for store in self._factory.stores_holding(resource, namespace):
            known = store.get(key)
            if known is not None and known.metadata.uid in uids:
                store.observe_deleted(known)


def _key(resource: Resource[T], namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace and resource.namespaced else name


def _finished(resource: Resource[T], answer: T) -> bool:
    """Whether an answer shows an object that its last finalizer held back, and no longer does.

    Pods are the exception: those end when their kubelet says so, finalizers or not.
    """
    meta = answer.metadata
    if resource.kind == "Pod" and not resource.group:
        return False
    return meta.deletion_timestamp is not None and not meta.finalizers
