"""Whether who asks may: by a bearer token that the API server knows, and rights it has there.

As controller-runtime protects metrics: a TokenReview says whose the token is, a SubjectAccessReview
whether that user may ``get`` the path. Who cannot be judged is not let in.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from mcm.client.errors import Forbidden, KubeError
from mcm.client.verbs import Carrier
from mcm.clock import Clock
from mcm.endpoints.reviews import may, user_of
from mcm.rate_limited_log import RateLimitedLog

logger = logging.getLogger(__name__)

ALLOWED_FOR: Final = 30.0
"""Seconds for which who was let in is let in again: so long a revoked token is good for."""
REFUSED_FOR: Final = 10.0
"""Seconds for which who was refused is refused again."""
REVIEW_LIMIT: Final = 8.0
"""Seconds that the API server has for both reviews: less than a scrape may take."""

_REMEMBERED: Final = 256
_MOST_WAITING: Final = 32
_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9\-._~+/]+=*) *", re.ASCII | re.IGNORECASE)
_CHALLENGE: Final = 'Bearer realm="mcm"'


@final
class AuthorizationMetrics:
    """``result`` is allowed, unauthenticated, forbidden, or unknown (nobody could judge)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "mcm_endpoints_authorization_total",
            "Requests for protected endpoints, by what was decided.",
            ("result",),
            registry=registry,
        )


@final
@dataclass(frozen=True, slots=True)
class _Verdict:
    status: HTTPStatus
    why: str = ""


_NO_TOKEN: Final = _Verdict(
    HTTPStatus.UNAUTHORIZED, "send 'Authorization: Bearer TOKEN', with a service account's token"
)
_UNKNOWN_TOKEN: Final = _Verdict(
    HTTPStatus.UNAUTHORIZED,
    "the API server does not know this token: it expired, was revoked, is meant for another "
    "audience, or is of another cluster",
)
_CROWDED: Final = _Verdict(
    HTTPStatus.SERVICE_UNAVAILABLE, "too many tokens are being reviewed; try again in a moment"
)
_RESULTS: Final = {
    HTTPStatus.OK: "allowed",
    HTTPStatus.UNAUTHORIZED: "unauthenticated",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.SERVICE_UNAVAILABLE: "unknown",
}


@final
class TokenAuthorization:
    """A guard (:mod:`.routes`) that asks ``client``, whose own limits bound how often and how many
    at once. Of tokens it keeps keyed hashes, as many as fit and for seconds only."""

    def __init__(
        self,
        client: Carrier,
        *,
        clock: Clock,
        metrics: AuthorizationMetrics,
        audiences: Sequence[str] = (),
    ) -> None:
        self._client = client
        self._clock = clock
        self._metrics = metrics
        self._audiences = tuple(audiences)
        self._log = RateLimitedLog(logger, clock)
        self._waiting = 0
        self._hash_key = os.urandom(32)
        # Apart, so that whoever tries many tokens makes nobody else be asked about again.
        self._let_in = _Remembered(clock, ALLOWED_FOR)
        self._refused = _Remembered(clock, REFUSED_FOR)

    async def __call__(self, request: web.BaseRequest) -> web.Response | None:
        """Return the refusal of ``request``: 401, 403, or 503 if the API server does not judge."""
        verdict = await self._verdict(request)
        self._metrics.requests.labels(_RESULTS[verdict.status]).inc()
        if verdict.status is HTTPStatus.OK:
            return None
        text = f"{verdict.status.value}: {verdict.status.phrase}\n{verdict.why}\n"
        headers = {"Cache-Control": "no-store"}
        if verdict.status is HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = _CHALLENGE
        return web.Response(status=verdict.status, text=text, headers=headers)

    async def _verdict(self, request: web.BaseRequest) -> _Verdict:
        token = _token_of(request)
        if token is None:
            return _NO_TOKEN
        # Who may read a page may ask for its head.
        verb = "get" if request.method == "HEAD" else request.method.lower()
        key = self._key(token, verb, request.path)
        known = self._let_in.recall(key) or self._refused.recall(key)
        if known is not None:
            return known
        if self._waiting >= _MOST_WAITING:
            return _CROWDED
        self._waiting += 1
        try:
            async with asyncio.timeout(REVIEW_LIMIT):
                verdict = await self._reviewed(token, verb, request.path)
        except (KubeError, TimeoutError) as error:
            return self._not_judged(error)
        finally:
            self._waiting -= 1
        kept = self._let_in if verdict.status is HTTPStatus.OK else self._refused
        kept.remember(key, verdict)
        return verdict

    async def _reviewed(self, token: str, verb: str, path: str) -> _Verdict:
        user = await user_of(self._client, token, self._audiences)
        if user is None:
            return _UNKNOWN_TOKEN
        decision = await may(self._client, user, verb=verb, path=path)
        if decision.allowed:
            return _Verdict(HTTPStatus.OK)
        because = f": {decision.reason}" if decision.reason else ""
        why = f"{user.username} may not {verb} the path {path}{because}"
        return _Verdict(HTTPStatus.FORBIDDEN, why)

    def _not_judged(self, error: KubeError | TimeoutError) -> _Verdict:
        if isinstance(error, Forbidden):
            why = (
                "the manager may not ask the API server: it needs to create tokenreviews and "
                "subjectaccessreviews (role metrics-authorization)"
            )
        elif isinstance(error, KubeError):
            why = "the API server could not be asked whether you may"
        else:
            why = f"the API server did not say within {REVIEW_LIMIT:g} s whether you may"
        self._log.tell("authorization", f"nobody is let in to the endpoints: {why}: {error}")
        return _Verdict(HTTPStatus.SERVICE_UNAVAILABLE, why)

    def _key(self, token: str, verb: str, path: str) -> bytes:
        text = "\0".join((token, verb, path)).encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, key=self._hash_key, digest_size=32).digest()


@final
class _Remembered:
    """Verdicts of one kind, the newest ones, each for ``period`` seconds."""

    def __init__(self, clock: Clock, period: float) -> None:
        self._clock = clock
        self._period = period
        self._verdicts: OrderedDict[bytes, tuple[float, _Verdict]] = OrderedDict()

    def recall(self, key: bytes) -> _Verdict | None:
        since, verdict = self._verdicts.get(key, (0.0, None))
        if verdict is None or self._clock.monotonic() - since >= self._period:
            self._verdicts.pop(key, None)
            return None
        return verdict

    def remember(self, key: bytes, verdict: _Verdict) -> None:
        self._verdicts[key] = (self._clock.monotonic(), verdict)
        self._verdicts.move_to_end(key)
        while len(self._verdicts) > _REMEMBERED:
            self._verdicts.popitem(last=False)


def _token_of(request: web.BaseRequest) -> str | None:
    sent = request.headers.getall("Authorization", ())
    found = _BEARER.fullmatch(sent[0].strip()) if len(sent) == 1 else None
    return found[1] if found is not None else None
