"""The verbs of the Kubernetes API, declared once: what a caller may say, and the call that it is.

Whoever reads takes an :class:`ObjectReader`, whoever changes something an :class:`ObjectWriter`,
who needs both an :class:`ObjectClient`. What differs between those that have the verbs is how a
call is carried out: the client sends it, the informers' writer has it sent and lets the stores
know, a test answers by itself. They implement :meth:`Carrier.perform`, and no verb.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeVar

from mcm.api.core import PODS
from mcm.api.meta import Resource, T
from mcm.client import answers
from mcm.client.answers import ListPage
from mcm.client.requests import (
    ACCEPT,
    SEND,
    Body,
    Call,
    Patch,
    PatchType,
    collection_path,
    delete_body,
    encode_object,
    eviction_body,
    item_path,
    named_namespace,
    patch_body,
    query_of,
)
from mcm.client.retry import Safety
from mcm.client.transport import Lane, Response, StreamResponse

R = TypeVar("R")


class Carrier(ABC):
    """The one port that all verbs go through."""

    @abstractmethod
    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        """Carry out ``call``; return what ``read`` finds in the answer to it.

        Raises only :mod:`mcm.client.errors` and what a fence in the way raises.
        """


class ObjectReader(Carrier):
    """Reads past the mirror. Every verb raises :mod:`mcm.client.errors`, and ValueError for a call
    that cannot be meant (an empty name)."""

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        """Read one object from the server (controllers read from stores instead)."""
        path = item_path(resource, name, namespace)
        call = Call("GET", "GET", path, resource=resource, namespace=namespace, name=name)
        return await self.perform(call, partial(answers.object_of, resource))

    async def list_page(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        continue_token: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> ListPage[T]:
        """Read one page of a collection; without a namespace, of all namespaces.

        Raises :class:`Gone` if the continue token or the version is no longer kept, and
        :class:`TooLargeResourceVersion` (not retried) if the server is behind that version.
        """
        if continue_token:  # it holds the version: with both, the server refuses
            resource_version = resource_version_match = ""
        query = query_of(
            ("labelSelector", label_selector),
            ("fieldSelector", field_selector),
            ("limit", str(limit) if limit else ""),
            ("continue", continue_token),
            ("resourceVersion", resource_version),
            ("resourceVersionMatch", resource_version_match),
        )
        # Long lists shrink tenfold; watches are never compressed, as that would hold events back.
        headers = {**ACCEPT, "Accept-Encoding": "gzip"}
        path = collection_path(resource, namespace)
        call = Call("LIST", "GET", path, query, headers, resource=resource, namespace=namespace)
        return await self.perform(call, partial(answers.page_of, resource))

    async def get_raw(self, path: str, *, query: Sequence[tuple[str, str]] = ()) -> bytes:
        """Read any path (``/version``, ``/readyz``, ``/apis``) as bytes."""
        if not path.startswith("/"):
            raise ValueError(f"a path starts with a slash: {path!r}")
        return await self.perform(Call("GET", "GET", path, tuple(query)), _body)

    def watch(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int,
        allow_bookmarks: bool = True,
        send_initial_events: bool = False,
        read_timeout: float | None,
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Open a watch; the stream is closed when the context is left.

        ``timeout_seconds`` is for the server, ``read_timeout`` the longest silence we bear
        (:class:`RequestTimeout` while reading chunks). Raises a typed :class:`ApiError` on any
        other status than success, with Retry-After if the server said one.
        """
        query = query_of(
            ("watch", "1"),
            ("allowWatchBookmarks", "true" if allow_bookmarks else ""),
            ("sendInitialEvents", "true" if send_initial_events else ""),
            # Required beside sendInitialEvents, or the server refuses.
            ("resourceVersionMatch", "NotOlderThan" if send_initial_events else ""),
            ("resourceVersion", resource_version),
            ("labelSelector", label_selector),
            ("fieldSelector", field_selector),
            ("timeoutSeconds", str(timeout_seconds)),
        )
        path = collection_path(resource, namespace)
        call = Call("WATCH", "GET", path, query, resource=resource, lane=Lane.WATCH)
        return self.follow(call, read_timeout=read_timeout)

    @abstractmethod
    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Carry out a call whose answer is a stream; never repeated, as who watches knows better
        how to go on."""


class ObjectWriter(Carrier):
    """Changes objects. Every verb raises :mod:`mcm.client.errors`, what a fence raises, and
    ValueError for a call that cannot be meant.

    ``field_manager`` is the name under which the server remembers whose fields are whose.
    """

    field_manager: str = "mcm"

    async def create(self, resource: Resource[T], body: Body, *, namespace: str = "") -> T:
        """Create an object; apiVersion and kind are filled in. Raises :class:`AlreadyExists`."""
        call = Call(
            "CREATE",
            "POST",
            collection_path(resource, named_namespace(resource, namespace)),
            query_of(("fieldManager", self.field_manager)),
            SEND,
            encode_object(resource, body),
            safety=Safety.WRITE,
            resource=resource,
            namespace=namespace,
        )
        return await self.perform(call, partial(answers.object_of, resource))

    async def update(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> T:
        """Replace an object as a whole (PUT). For leases only: everything else is patched."""
        call = Call(
            "UPDATE",
            "PUT",
            item_path(resource, name, namespace, subresource),
            query_of(("fieldManager", self.field_manager)),
            SEND,
            encode_object(resource, body),
            safety=Safety.WRITE,
            resource=resource,
            namespace=namespace,
            name=name,
            subresource=subresource,
        )
        return await self.perform(call, partial(answers.object_of, resource))

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        """Patch an object or a subresource of it; return the object as it then is.

        A precondition is part of a merge patch: ``metadata.uid`` or ``metadata.resourceVersion``.
        ``force`` takes fields over from other managers, in an apply only. Raises :class:`Conflict`
        if the precondition no longer holds.
        """
        if force and patch_type is not PatchType.APPLY:
            raise ValueError("force belongs to server-side apply only")
        manager = field_manager or self.field_manager
        call = Call(
            "PATCH",
            "PATCH",
            item_path(resource, name, namespace, subresource),
            query_of(("fieldManager", manager), ("force", "true" if force else "")),
            {**ACCEPT, "Content-Type": patch_type.value},
            patch_body(resource, name, patch, patch_type),
            safety=Safety.WRITE,
            resource=resource,
            namespace=namespace,
            name=name,
            subresource=subresource,
        )
        return await self.perform(call, partial(answers.object_of, resource))

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
        """Delete an object. Return it if it stays for now (finalizers, grace), None if it is gone.

        ``propagation`` is Background, Foreground or Orphan. Raises :class:`NotFound` if it was
        gone before, :class:`Conflict` if ``uid`` or ``resource_version`` do not match.
        """
        call = Call(
            "DELETE",
            "DELETE",
            item_path(resource, name, namespace),
            headers=SEND,
            body=delete_body(
                uid=uid,
                resource_version=resource_version,
                propagation=propagation,
                grace_period_seconds=grace_period_seconds,
            ),
            safety=Safety.WRITE,
            resource=resource,
            namespace=namespace,
            name=name,
            uid=uid,
        )
        return await self.perform(call, partial(answers.remainder_of, resource))

    async def evict(
        self, name: str, *, namespace: str, uid: str = "", grace_period_seconds: int | None = None
    ) -> None:
        """Ask for a pod's eviction. Raises :class:`TooManyRequests`, never retried here, with the
        causes that name the disruption budget which refused."""
        call = Call(
            "EVICT",
            "POST",
            item_path(PODS, name, namespace, "eviction"),
            headers=SEND,
            body=eviction_body(
                name, namespace=namespace, uid=uid, grace_period_seconds=grace_period_seconds
            ),
            safety=Safety.EVICTION,
            resource=PODS,
            namespace=namespace,
            name=name,
            subresource="eviction",
            uid=uid,
        )
        await self.perform(call, _body)


class ObjectClient(ObjectReader, ObjectWriter):
    """All verbs, on one server."""


def _body(response: Response) -> bytes:
    return response.body
