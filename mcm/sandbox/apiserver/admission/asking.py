"""Asks the webhooks that a request's change must pass.

What the change comes to is found by trying it: the request is answered as a dry run first, and its
object shown to the webhooks. A request that fails on trial fails in earnest, without a question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, cast, final

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Request, Response, StreamResponse
from mcm.sandbox.apiserver.admission.review import NoAnswer, question, unasked, warnings_of
from mcm.sandbox.apiserver.admission.webhooks import SCALE, Change, Webhook, concerned, is_watched
from mcm.sandbox.apiserver.authentication.users import User
from mcm.sandbox.apiserver.errors import StatusError
from mcm.sandbox.apiserver.kinds.admission import VALIDATING_WEBHOOKS
from mcm.sandbox.apiserver.kinds.networking import SERVICES
from mcm.sandbox.apiserver.requests.routing import Target, verb_of
from mcm.sandbox.apiserver.store import Store

Trial = Callable[[Request], Response | StreamResponse]
"""Answers a request; raises StatusError."""

_ASKED_AT = ("create", "update", "patch", "delete")
_JSON: Mapping[str, str] = {"accept": "application/json"}


class Caller(Protocol):
    """Posts a body to a webhook's URL and returns what it says; may take the webhook's timeout.
    Raises NoAnswer."""

    def __call__(self, url: str, webhook: Webhook, body: bytes) -> Awaitable[bytes]: ...


@final
@dataclass(slots=True)
class Asking:
    """Nobody is asked until ``caller`` is set: a server by itself has no way out."""

    store: Store
    caller: Caller | None = None

    def has_somebody_to_ask(self) -> bool:
        return self.caller is not None and len(self.store.collection(VALIDATING_WEBHOOKS)) > 0

    async def ask(self, request: Request, user: User, target: Target, trial: Trial) -> list[str]:
        """Return the warnings of the webhooks that let a request pass.

        Raises StatusError: one of them denies it, or must be asked and cannot be.
        """
        change = self._change(request, user, target, trial)
        warnings: list[str] = []
        if change is not None:
            for webhook in concerned(self.store, change):
                warnings += await self._answer_of(webhook, change)
        return warnings

    async def _answer_of(self, webhook: Webhook, change: Change) -> list[str]:
        assert self.caller is not None
        uid, body = question(change)
        url = f"{webhook.url or _service_url(webhook)}?timeout={webhook.timeout}s"
        try:
            if not webhook.url:
                raise NoAnswer(f'Post "{url}": {self._why_unreachable(webhook)}')
            return warnings_of(webhook, uid, await self.caller(url, webhook, body))
        except NoAnswer as error:
            if webhook.fails:
                raise unasked(webhook, str(error)) from None
            return []

    def _why_unreachable(self, webhook: Webhook) -> str:
        """Services here lead nowhere: nothing runs in the pods behind them."""
        name = str(webhook.service.get("name"))
        key = f"{webhook.service.get('namespace')}/{name}"
        if self.store.collection(SERVICES).get(key) is None:
            return f'service "{name}" not found'
        return f'no endpoints available for service "{name}"'

    def _change(self, request: Request, user: User, target: Target, trial: Trial) -> Change | None:
        verb = verb_of(request.method, target, watch=False)
        if verb not in _ASKED_AT or not is_watched(self.store, target.info, target.subresource):
            return None
        old = _found(target, trial) if target.name else None
        obj = _tried(request, trial) if verb != "delete" else None
        if obj is None and (verb != "delete" or old is None):
            return None
        operation = "DELETE" if verb == "delete" else "CREATE" if old is None else "UPDATE"
        meta = cast(JSONObject, (obj or old or {}).get("metadata") or {})
        return Change(
            target.info,
            operation,
            user,
            namespace=target.namespace,
            name=target.name or str(meta.get("name", "")),
            subresource=target.subresource,
            obj=obj,
            old=old,
            dry_run=any(name == "dryRun" for name, _ in request.query),
        )


def _found(target: Target, trial: Trial) -> JSONObject | None:
    """A Scale is compared with a Scale; of a status the whole object is shown."""
    subresource = SCALE if target.subresource == SCALE else ""
    path = target.info.path(target.namespace, target.name, subresource)
    return _document(Request("GET", path, headers=_JSON), trial)


def _tried(request: Request, trial: Trial) -> JSONObject | None:
    query = [(name, value) for name, value in request.query if name != "dryRun"]
    others = {k: v for k, v in request.headers.items() if k.lower() != "accept"}
    headers = {**others, **_JSON}
    tried = replace(request, query=(*query, ("dryRun", "All")), headers=headers)
    return _document(tried, trial)


def _document(request: Request, trial: Trial) -> JSONObject | None:
    try:
        answer = trial(request)
    except StatusError:
        return None
    assert isinstance(answer, Response)
    return cast(JSONObject, orjson.loads(answer.body))


def _service_url(webhook: Webhook) -> str:
    service = webhook.service
    host = f"{service.get('name')}.{service.get('namespace')}.svc"
    return f"https://{host}:{service.get('port', 443)}{service.get('path') or '/'}"
