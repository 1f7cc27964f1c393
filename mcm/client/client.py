"""Typed verbs on one API server.

Preparation (:mod:`mcm.client.requests`), interpretation (:mod:`mcm.client.answers`) and the retry
decision (:mod:`mcm.client.retry`) are pure; this module sends, waits and counts.
"""

from __future__ import annotations

import logging
import random as random_module
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar, final

import msgspec

from mcm.api.meta import KubeObject, Resource
from mcm.client import answers, requests
from mcm.client.answers import ListPage
from mcm.client.errors import KubeError, TransportError
from mcm.client.metrics import ClientMetrics, code_of
from mcm.client.requests import Call, PatchType
from mcm.client.retry import RetryPolicy, wait_before_retry
from mcm.client.throttle import Throttle
from mcm.client.transport import Lane, Request, Response, StreamResponse, Transport
from mcm.clock import Clock

__all__ = ["Client", "ListPage", "PatchType"]

T = TypeVar("T", bound=KubeObject)

_ERROR_BODY_LIMIT = 64 * 1024

logger = logging.getLogger(__name__)


@final
class Client:
    """One server, many callers. Every verb raises only :mod:`mcm.client.errors`, what ``fence``
    raises, and ValueError for a request that cannot be meant (an empty name).

    ``fence`` is called before each attempt of a write, and again when its bytes leave; it raises to
    forbid it. ``timeout`` limits one attempt, ``budget`` a call with all its retries (both in
    seconds). Watches are outside ``max_in_flight`` (0: no cap) and ``qps`` (0: no limit), and are
    never retried here: who watches knows better how to go on. A client whose ``lane`` is LEASE is
    meant for the elector: give it no fence, short times, and it never waits behind others.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        user_agent: str = "mcm",
        fence: Callable[[], None] | None = None,
        metrics: ClientMetrics | None = None,
        max_in_flight: int = 64,
        qps: float = 0,
        burst: int = 0,
        lane: Lane = Lane.REQUEST,
        field_manager: str = "mcm",
        timeout: float = 30.0,
        budget: float = 60.0,
        retry: RetryPolicy | None = None,
        random: random_module.Random | None = None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._user_agent = user_agent
        self._fence = fence
        self._metrics = metrics
        self._lane = lane
        self._field_manager = field_manager
        self._timeout = timeout
        self._budget = budget
        self._retry = retry or RetryPolicy()
        self._random = random or random_module.Random()
        self._throttle = Throttle(clock=clock, max_in_flight=max_in_flight, qps=qps, burst=burst)

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        """Read one object from the server (controllers read from stores instead)."""
        call = requests.get(resource, name, namespace=namespace)
        return answers.object_of(resource, await self._send(call))

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
        lane: Lane | None = None,
    ) -> ListPage[T]:
        """Read one page of a collection; without a namespace, of all namespaces.

        Raises :class:`Gone` if the continue token or the version is no longer kept, and
        :class:`TooLargeResourceVersion` (not retried) if the server is behind that version.
        """
        call = requests.list_page(
            resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
        )
        return answers.page_of(resource, await self._send(call, lane=lane))

    async def create(
        self,
        resource: Resource[T],
        body: Mapping[str, object] | msgspec.Struct,
        *,
        namespace: str = "",
    ) -> T:
        """Create an object; apiVersion and kind are filled in. Raises :class:`AlreadyExists`."""
        call = requests.create(
            resource, body, namespace=namespace, field_manager=self._field_manager
        )
        return answers.object_of(resource, await self._send(call))

    async def update(
        self,
        resource: Resource[T],
        name: str,
        body: Mapping[str, object] | msgspec.Struct,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> T:
        """Replace an object as a whole (PUT). For leases only: everything else is patched."""
        call = requests.update(
            resource,
            name,
            body,
            namespace=namespace,
            subresource=subresource,
            field_manager=self._field_manager,
        )
        return answers.object_of(resource, await self._send(call))

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
        """Patch an object or a subresource of it; return the object as it then is.

        A precondition is part of a merge patch: ``metadata.uid`` or ``metadata.resourceVersion``.
        Raises :class:`Conflict` if it no longer holds.
        """
        call = requests.patch(
            resource,
            name,
            patch,
            namespace=namespace,
            subresource=subresource,
            patch_type=patch_type,
            field_manager=field_manager or self._field_manager,
            force=force,
        )
        return answers.object_of(resource, await self._send(call))

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
        call = requests.delete(
            resource,
            name,
            namespace=namespace,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
        )
        return answers.remainder_of(resource, await self._send(call))

    async def evict(
        self,
        name: str,
        *,
        namespace: str,
        uid: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Ask for a pod's eviction. Raises :class:`TooManyRequests`, never retried here, with the
        causes that name the disruption budget which refused."""
        await self._send(
            requests.evict(
                name, namespace=namespace, uid=uid, grace_period_seconds=grace_period_seconds
            )
        )

    async def get_raw(self, path: str, *, query: Sequence[tuple[str, str]] = ()) -> bytes:
        """Read any path (``/version``, ``/readyz``, ``/apis``) as bytes."""
        return (await self._send(requests.raw(path, tuple(query)))).body

    @asynccontextmanager
    async def watch(
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
    ) -> AsyncIterator[StreamResponse]:
        """Open a watch; the stream is closed when the context is left.

        ``timeout_seconds`` is for the server, ``read_timeout`` the longest silence we bear
        (:class:`RequestTimeout` while reading chunks). Raises a typed :class:`ApiError` on any
        other status than success, with Retry-After if the server said one.
        """
        request = self._dressed(
            requests.watch(
                resource,
                namespace=namespace,
                resource_version=resource_version,
                label_selector=label_selector,
                field_selector=field_selector,
                timeout_seconds=timeout_seconds,
                allow_bookmarks=allow_bookmarks,
                send_initial_events=send_initial_events,
                read_timeout=read_timeout,
            ),
            timeout=self._timeout,
        )
        async with self._counted_stream(request, resource.name) as response:
            if not 200 <= response.status < 300:
                raise await _stream_failure(response)
            yield response

    async def aclose(self) -> None:
        """Close the transport; idempotent."""
        await self._transport.aclose()

    async def _send(self, call: Call, *, lane: Lane | None = None) -> Response:
        """Send until it succeeds, may not be repeated, or the call's time is used up."""
        deadline = self._clock.monotonic() + self._budget
        attempt = 0
        while True:
            left = deadline - self._clock.monotonic()
            timeout = self._timeout if attempt == 0 else min(self._timeout, left)
            try:
                return await self._attempt(call, lane=lane or self._lane, timeout=timeout)
            except KubeError as error:
                delay = wait_before_retry(
                    self._retry,
                    attempt=attempt,
                    error=error,
                    safety=call.safety,
                    left=deadline - self._clock.monotonic(),
                    chance=self._random.random(),
                )
                if delay is None:
                    raise
                self._note_retry(call, error, delay)
            await self._clock.sleep(delay)
            attempt += 1

    async def _attempt(self, call: Call, *, lane: Lane, timeout: float) -> Response:
        queued_at = self._clock.monotonic()
        async with self._throttle.turn():
            fence = self._fence if call.mutating else None
            if fence is not None:
                fence()  # leadership may have gone in the queue
            started_at = self._clock.monotonic()
            if self._metrics is not None:
                self._metrics.waited(started_at - queued_at, verb=call.verb)
            # … or goes while a connection is made, or the loop stands still: asked once more when
            # the bytes leave.
            request = self._dressed(call.request, timeout=timeout)
            request = replace(request, lane=lane, permit=fence)
            response = await self._exchange(call, request, started_at)
        error = answers.failure(response.status, response.headers, response.body)
        if error is not None:
            raise error
        return response

    async def _exchange(self, call: Call, request: Request, started_at: float) -> Response:
        code = "<error>"
        try:
            response = await self._transport.request(request)
            code = str(response.status)
        finally:
            if self._metrics is not None:
                self._metrics.answered(code, method=request.method, resource=call.resource)
                took = self._clock.monotonic() - started_at
                self._metrics.took(took, verb=call.verb, resource=call.resource)
        return response

    @asynccontextmanager
    async def _counted_stream(
        self, request: Request, resource: str
    ) -> AsyncIterator[StreamResponse]:
        opened = False
        try:
            async with self._transport.stream(request) as response:
                opened = True
                self._count(str(response.status), resource)
                yield response
        except TransportError:
            if not opened:
                self._count("<error>", resource)
            raise

    def _count(self, code: str, resource: str) -> None:
        if self._metrics is not None:
            self._metrics.answered(code, method="GET", resource=resource)

    def _dressed(self, request: Request, *, timeout: float) -> Request:
        headers = {**request.headers, "User-Agent": self._user_agent}
        return replace(request, headers=headers, timeout=timeout)

    def _note_retry(self, call: Call, error: KubeError, delay: float) -> None:
        if self._metrics is not None:
            self._metrics.retried(code_of(error), verb=call.verb, resource=call.resource)
        logger.debug(
            "request will be repeated",
            extra={
                "verb": call.verb,
                "resource": call.resource,
                "path": call.request.path,
                "delay": round(delay, 3),
                "cause": str(error),
            },
        )


async def _stream_failure(response: StreamResponse) -> KubeError:
    """Read the Status of a refused watch, as far as it comes and fits."""
    body = b""
    try:
        async for chunk in response.chunks:
            body += chunk
            if len(body) > _ERROR_BODY_LIMIT:
                break
    except TransportError:
        pass  # the status says enough; a torn body only costs the message
    error = answers.failure(response.status, response.headers, body)
    assert error is not None, "only called for failures"
    return error
