"""A Kubernetes API server as one plain object: a request in, a response or a stream out.

No sockets, no threads, no authentication: front ends add those. All the work of a request is
synchronous, so requests never see each other half done; only a read of a revision that is not
reached yet waits. Time and chance are injected.
"""

from __future__ import annotations

import asyncio
import logging
import random as randomness
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import final

from mcm.api.meta import JSONObject
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import Clock
from mcm.sandbox.apiserver.definitions.establishing import DefinitionWatcher
from mcm.sandbox.apiserver.errors import StatusError, internal, too_large_body, too_large_version
from mcm.sandbox.apiserver.garbage.events import EventExpiry
from mcm.sandbox.apiserver.kinds.builtin import BUILTIN_RESOURCES, PERMANENT_NAMESPACES
from mcm.sandbox.apiserver.limits import LARGEST_BODY
from mcm.sandbox.apiserver.reading.listing import NotYetReached
from mcm.sandbox.apiserver.registry import Registry, ResourceInfo
from mcm.sandbox.apiserver.requests.calls import Call, ServerSettings, ServerState, WriteOptions
from mcm.sandbox.apiserver.requests.counters import RequestCounters
from mcm.sandbox.apiserver.requests.endpoints import Endpoints
from mcm.sandbox.apiserver.requests.handlers import answer
from mcm.sandbox.apiserver.requests.negotiation import accepted_form
from mcm.sandbox.apiserver.requests.routing import Target, resolve, verb_of
from mcm.sandbox.apiserver.store import DEFAULT_WINDOW, Change, Store
from mcm.sandbox.apiserver.writing.create_update import create_object

__all__ = ["ApiServer", "ServerSettings"]

logger = logging.getLogger(__name__)

DEFAULT_VERSION = "v1.32.0"

_NO_QUERY: Mapping[str, str] = MappingProxyType({})
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})


@final
class ApiServer:
    """``store`` and ``registry`` are open to the sandbox's own controllers; ``requests`` counts
    what was asked, by whom; ``witnesses`` are told each request and the status of its answer;
    ``settings`` may be changed at any time.

    ``window`` is how many changes a collection keeps for watches; ``version`` what ``/version``
    claims.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        random: randomness.Random,
        settings: ServerSettings | None = None,
        window: int = DEFAULT_WINDOW,
        version: str = DEFAULT_VERSION,
    ) -> None:
        self.store = Store(window=window)
        self.registry = Registry(BUILTIN_RESOURCES)
        self.settings = settings or ServerSettings()
        self.requests = RequestCounters()
        self.witnesses: list[Callable[[Request, int], None]] = []
        self._state = ServerState(self.store, self.registry, clock, random, self.settings)
        self._endpoints = Endpoints(self._state, self.requests, version=version)
        DefinitionWatcher(
            self._state, self._builtin("apiextensions.k8s.io", "customresourcedefinitions")
        )
        EventExpiry(self._state)
        self._create_namespaces()

    async def handle(self, request: Request) -> Response | StreamResponse:
        """Answer one request. Never raises for what a client sent; a read of a future revision is
        held for ``settings.fresh_wait`` seconds and then refused."""
        try:
            return self.respond(request)
        except NotYetReached as error:
            await self._reach(error.revision)
        return self.respond(request, waited=True)

    def respond(self, request: Request, *, waited: bool = False) -> Response | StreamResponse:
        """Answer one request at once. A read of a future revision raises NotYetReached, or is
        refused if it has ``waited``. A watch needs a running event loop."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = _first_values(request.query)
        target = resolve(self.registry, request.path)
        try:
            response = self._answer(request, target, query, headers)
        except StatusError as error:
            response = error.response()
        except NotYetReached as error:
            if not waited:
                raise
            response = too_large_version(error.revision, self.store.revision).response()
        except Exception as error:
            if self.settings.raise_bugs:
                raise
            logger.exception("no answer for a request", extra={"path": request.path})
            response = internal(f"{type(error).__name__}: {error}").response()
        self._count(request, target, query, headers, response.status)
        for tell in self.witnesses:
            tell(request, response.status)
        return response

    def end_watches(self) -> None:
        """End every watch under way, as a restart or a shutdown does."""
        for stream in tuple(self._state.streams):
            stream.end()

    def objects(self, group: str, plural: str, namespace: str = "") -> list[JSONObject]:
        """Return the current objects of a kind by key, as stored: read-only, nothing is counted."""
        storage = f"{plural}.{group}" if group else plural
        found = self.store.collection(storage).ordered(namespace or None)
        return [stored.body for stored in found]

    @property
    def clock(self) -> Clock:
        return self._state.clock

    def restart(self) -> None:
        """Do what a restart looks like from outside: watches end, history is forgotten."""
        self.end_watches()
        self.store.compact()

    @property
    def watch_count(self) -> int:
        """How many watches are under way."""
        return len(self._state.streams)

    def _answer(
        self,
        request: Request,
        target: Target | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> Response | StreamResponse:
        if len(request.body) > LARGEST_BODY:
            raise too_large_body(LARGEST_BODY)
        if target is None:
            return self._endpoints.answer(request, query, headers)
        verb = _verb(request, target, query)
        return answer(self._state, _call(request, target, verb, query, headers))

    def _count(
        self,
        request: Request,
        target: Target | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        status: int,
    ) -> None:
        agent = headers.get("user-agent", "unknown").partition("/")[0]
        if target is None:
            self.requests.record(request.method.lower(), "", "", agent, status)
        else:
            verb = _verb(request, target, query)
            self.requests.record(verb, target.info.qualified, target.subresource, agent, status)

    def _builtin(self, group: str, plural: str) -> ResourceInfo:
        info = self.registry.find(group, "v1", plural)
        assert info is not None
        return info

    def _create_namespaces(self) -> None:
        info = self._builtin("", "namespaces")
        for name in PERMANENT_NAMESPACES:
            obj: JSONObject = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name},
            }
            options = WriteOptions(manager="apiserver")
            create_object(self._state, info, obj, namespace="", options=options)

    async def _reach(self, revision: int) -> None:
        """Wait until the store has come to ``revision``, or the patience for it is over."""
        reached = asyncio.get_running_loop().create_future()

        def notice(change: Change) -> None:
            if change.revision >= revision and not reached.done():
                reached.set_result(None)

        unsubscribe = self.store.subscribe(notice)
        try:
            async with asyncio.timeout(self.settings.fresh_wait):
                await reached
        except TimeoutError:
            pass
        finally:
            unsubscribe()


def _first_values(query: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(reversed(query)) if query else _NO_QUERY


def _verb(request: Request, target: Target, query: Mapping[str, str]) -> str:
    return verb_of(request.method, target, watch=query.get("watch", "") in _TRUE)


def _call(
    request: Request,
    target: Target,
    verb: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
) -> Call:
    return Call(
        target=target,
        verb=verb,
        query=query,
        headers=headers,
        body=request.body,
        form=accepted_form(headers.get("accept", "")),
        agent=headers.get("user-agent", "unknown"),
    )
