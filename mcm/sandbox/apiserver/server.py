"""A Kubernetes API server as one plain object: a request in, a response or a stream out.

No sockets, no threads: front ends add those, and ask :meth:`ApiServer.identify` who sends a
request. All the work of a request is synchronous, so requests never see each other half done; only
a read of a revision that is not reached yet waits. Time and chance are injected.
"""

from __future__ import annotations

import asyncio
import logging
import random as randomness
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import final

from mcm.api.meta import JSONObject
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import Clock
from mcm.sandbox.apiserver.admission.asking import Asking
from mcm.sandbox.apiserver.authentication.account_tokens import AccountTokens
from mcm.sandbox.apiserver.authentication.authenticator import Authenticator
from mcm.sandbox.apiserver.authentication.impersonation import impersonation_in
from mcm.sandbox.apiserver.authentication.users import ADMIN, User
from mcm.sandbox.apiserver.authorization.attributes import Attributes, attributes_of
from mcm.sandbox.apiserver.authorization.authorizer import require
from mcm.sandbox.apiserver.bootstrap import create_first_objects
from mcm.sandbox.apiserver.definitions.establishing import DefinitionWatcher
from mcm.sandbox.apiserver.errors import StatusError, internal, too_large_body, too_large_version
from mcm.sandbox.apiserver.garbage.events import EventExpiry
from mcm.sandbox.apiserver.kinds.builtin import BUILTIN_RESOURCES
from mcm.sandbox.apiserver.limits import LARGEST_BODY
from mcm.sandbox.apiserver.reading.listing import NotYetReached
from mcm.sandbox.apiserver.reading.rendering import warned
from mcm.sandbox.apiserver.registry import Registry, ResourceInfo
from mcm.sandbox.apiserver.requests.calls import Call, ServerSettings, ServerState
from mcm.sandbox.apiserver.requests.counters import RequestCounters
from mcm.sandbox.apiserver.requests.endpoints import Endpoints
from mcm.sandbox.apiserver.requests.handlers import answer
from mcm.sandbox.apiserver.requests.negotiation import accepted_form
from mcm.sandbox.apiserver.requests.routing import Target, resolve, verb_of
from mcm.sandbox.apiserver.store import DEFAULT_WINDOW, Change, Store

__all__ = ["ApiServer", "ServerSettings"]

logger = logging.getLogger(__name__)

DEFAULT_VERSION = "v1.32.0"

_Parts = tuple[Target | None, Mapping[str, str], Mapping[str, str]]
"""What the path names, the first value of each parameter, headers under lower-case names."""

_NO_QUERY: Mapping[str, str] = MappingProxyType({})
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})


@final
class ApiServer:
    """``store`` and ``registry`` are open to the sandbox's own controllers; ``requests`` counts
    what was asked, by whom; ``witnesses`` are told each request and the status of its answer;
    ``settings`` may be changed at any time; ``asking`` asks webhooks once it has a way to them.

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
        self.authenticator = Authenticator(AccountTokens(self.store, clock))
        self._state = ServerState(
            self.store, self.registry, clock, random, self.authenticator, self.settings
        )
        self.asking = Asking(self.store)
        self._endpoints = Endpoints(self._state, self.requests, version=version)
        DefinitionWatcher(
            self._state, self._builtin("apiextensions.k8s.io", "customresourcedefinitions")
        )
        EventExpiry(self._state)
        create_first_objects(self._state)

    def identify(self, headers: Iterable[tuple[str, str]]) -> User:
        """Return the user that the headers of a request prove, or whom he poses as.

        Raises StatusError: 401; 403 for posing as somebody without leave."""
        pairs = tuple(headers)
        given = next((v for k, v in pairs if k.lower() == "authorization"), "")
        user = self.authenticator.user_of(given)
        wanted = impersonation_in(pairs)
        if wanted is None:
            return user
        for need in wanted.needs:
            attributes = Attributes(
                user,
                "impersonate",
                group=need.group,
                resource=need.resource,
                subresource=need.subresource,
                namespace=need.namespace,
                name=need.name,
            )
            require(self.settings.authorization, self.store, attributes)
        return wanted.user

    async def handle(self, request: Request, user: User = ADMIN) -> Response | StreamResponse:
        """Answer one request of ``user``. Never raises for what a client sent; a read of a future
        revision is held for ``settings.fresh_wait`` seconds and then refused. Webhooks are asked
        before a change is made."""
        try:
            warnings = await self._ask_webhooks(request, user)
        except StatusError as error:
            return self._told(request, self._parts(request), error.response())
        try:
            return warned(self.respond(request, user), warnings)
        except NotYetReached as error:
            await self._reach(error.revision)
        return self.respond(request, user, waited=True)

    async def _ask_webhooks(self, request: Request, user: User) -> list[str]:
        if request.method == "GET" or not self.asking.has_somebody_to_ask():
            return []
        target = resolve(self.registry, request.path)
        if target is None:
            return []
        return await self.asking.ask(request, user, target, partial(self._tried, user))

    def respond(
        self, request: Request, user: User = ADMIN, *, waited: bool = False
    ) -> Response | StreamResponse:
        """Answer one request at once. A read of a future revision raises NotYetReached, or is
        refused if it has ``waited``. A watch needs a running event loop."""
        parts = self._parts(request)
        try:
            response = self._answer(request, user, *parts)
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
        return self._told(request, parts, response)

    def _told(
        self, request: Request, parts: _Parts, response: Response | StreamResponse
    ) -> Response | StreamResponse:
        """Count the answer to a request, and tell whoever wants to know."""
        self._count(request, *parts, response.status)
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

    def _tried(self, user: User, request: Request) -> Response | StreamResponse:
        return self._answer(request, user, *self._parts(request))

    def _parts(self, request: Request) -> _Parts:
        headers = {name.lower(): value for name, value in request.headers.items()}
        return resolve(self.registry, request.path), _first_values(request.query), headers

    def _answer(
        self,
        request: Request,
        user: User,
        target: Target | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> Response | StreamResponse:
        if self.settings.authorization != "AlwaysAllow":
            attributes = attributes_of(user, request.method, request.path, query)
            require(self.settings.authorization, self.store, attributes)
        if len(request.body) > LARGEST_BODY:
            raise too_large_body(LARGEST_BODY)
        if target is None:
            return self._endpoints.answer(request, query, headers)
        verb = _verb(request, target, query)
        return answer(self._state, _call(request, user, target, verb, query, headers))

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
    user: User,
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
        user=user,
    )
