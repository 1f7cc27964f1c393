"""GET of objects and collections: at which revision, how many, and how to go on.

A list is of one revision from its first page to its last. Where that revision is no longer kept,
the continue token has expired: the answer is 410 and holds a token for an inconsistent rest.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Response
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    StatusError,
    bad_request,
    expired,
    invalid_options,
    not_permitted,
    not_supported,
)
from mcm.sandbox.apiserver.kinds.builtin import EVENTS
from mcm.sandbox.apiserver.reading.rendering import list_response, object_response
from mcm.sandbox.apiserver.reading.selection import Selection, parse_selection
from mcm.sandbox.apiserver.requests.calls import Call, ServerState
from mcm.sandbox.apiserver.store import Collection, Compacted, Stored
from mcm.sandbox.apiserver.writing.create_update import find

_TOKEN_VERSION = "meta.k8s.io/v1"
_INCONSISTENT = -1


class NotYetReached(Exception):
    """A read wants a revision the store has not come to; it may be waited for."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        super().__init__(f"revision {revision} is not reached")


@final
@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a list goes on: after ``key``, at ``revision`` (-1: whatever is current)."""

    revision: int
    key: str

    def token(self) -> str:
        document = {"v": _TOKEN_VERSION, "rv": self.revision, "start": self.key}
        return base64.urlsafe_b64encode(orjson.dumps(document)).decode().rstrip("=")

    @staticmethod
    def parse(token: str) -> Continuation:
        """Raises StatusError (400) for anything :meth:`token` did not make."""
        try:
            padded = token + "=" * (-len(token) % 4)
            document = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            revision, key = document["rv"], document["start"]
        except (binascii.Error, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise bad_request("continue key is not valid") from None
        if not isinstance(revision, int) or not isinstance(key, str):
            raise bad_request("continue key is not valid")
        return Continuation(revision, key)


def get(state: ServerState, call: Call) -> Response:
    """Answer with one object. Raises StatusError (400, 404), NotYetReached."""
    wanted_revision(state, call)
    return object_response(state, call, find(state, call))


def list_objects(state: ServerState, call: Call) -> Response:
    """Answer with a collection. Raises StatusError (400, 410, 422), NotYetReached."""
    selection = parse_selection(call.info, call.target.namespace, call.query)
    collection = state.store.collection(call.info.storage)
    limit = max(0, call.number("limit") or 0)
    token = call.query.get("continue", "")
    if token:
        return _next_page(state, call, collection, selection, limit, Continuation.parse(token))
    revision, items = _first_state(state, call, collection, selection, limit)
    # Served from a cache upstream, which does not page.
    if call.query.get("resourceVersion") == "0" and call.info.storage != EVENTS:
        limit = 0
    return _page(state, call, collection, selection, limit, revision, items)


def named_revision(call: Call) -> int | None:
    """Return the revision a call names; None for "" and "0". Raises StatusError (400)."""
    text = call.query.get("resourceVersion", "")
    if text in ("", "0"):
        return None
    if not text.isdecimal():
        raise bad_request(f"resourceVersion: Invalid value: {text!r}: it must be a number")
    return int(text)


def wanted_revision(state: ServerState, call: Call) -> int | None:
    """As :func:`named_revision`, for a read: raises NotYetReached if it lies in the future."""
    revision = named_revision(call)
    if revision is not None and revision > state.store.revision:
        raise NotYetReached(revision)
    return revision


def _first_state(
    state: ServerState, call: Call, collection: Collection, selection: Selection, limit: int
) -> tuple[int, Sequence[Stored]]:
    """Return the revision a list is of, and what is selected then."""
    _check_match(call)
    wanted = wanted_revision(state, call)
    match = call.query.get("resourceVersionMatch", "")
    # Unset with a limit, upstream has always meant exactly this revision.
    exact = match == "Exact" or (match == "" and limit > 0)
    if wanted is not None and exact:
        return wanted, _selected_at(collection, selection, wanted)
    lag = state.settings.read_lag
    if lag and call.query.get("resourceVersion"):
        behind = max(wanted or 0, state.store.revision - lag, collection.floor)
        return behind, _selected_at(collection, selection, behind)
    return state.store.revision, selection.current(collection)


def _selected_at(collection: Collection, selection: Selection, revision: int) -> list[Stored]:
    try:
        objects = collection.at(revision)
    except Compacted as error:
        raise expired(
            f"The resourceVersion for the provided list is too old: {error.revision}"
        ) from None
    return [stored for stored in objects if selection.matches(stored)]


def _check_match(call: Call) -> None:
    match, version = call.query.get("resourceVersionMatch", ""), call.query.get("resourceVersion")
    problem: StatusCause | None = None
    if match not in ("", "Exact", "NotOlderThan"):
        problem = not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", ""))
    elif match and not version:
        problem = not_permitted(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
    elif match == "Exact" and version == "0":
        problem = not_permitted(
            "resourceVersionMatch",
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        )
    if call.query.get("sendInitialEvents"):
        problem = not_permitted("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if problem is not None:
        raise invalid_options("ListOptions", problem)


# Pages ------------------------------------------------------------------------------------------


def _next_page(
    state: ServerState,
    call: Call,
    collection: Collection,
    selection: Selection,
    limit: int,
    start: Continuation,
) -> Response:
    if call.query.get("resourceVersion") not in (None, "", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    if start.revision == _INCONSISTENT:
        revision = state.store.revision
        objects: Sequence[Stored] = collection.ordered()
    else:
        revision = start.revision
        objects = _state_of(collection, start)
    rest = objects[bisect_right(objects, start.key, key=lambda stored: stored.key) :]
    items = [stored for stored in rest if selection.matches(stored)]
    return _page(state, call, collection, selection, limit, revision, items)


def _state_of(collection: Collection, start: Continuation) -> Sequence[Stored]:
    try:
        return collection.at(start.revision)
    except Compacted:
        fresh = Continuation(_INCONSISTENT, start.key).token()
        raise _expired_token(fresh) from None


def _expired_token(fresh: str) -> StatusError:
    return expired(
        "The provided continue parameter is too old to display a consistent list result. "
        "Start the list again without it, or go on with the continue token of this answer, "
        "which may show the rest in a later state.",
        continue_token=fresh,
    )


def _page(
    state: ServerState,
    call: Call,
    collection: Collection,
    selection: Selection,
    limit: int,
    revision: int,
    items: Sequence[Stored],
) -> Response:
    """Cut a page off ``items``, the selected objects that are left at ``revision``."""
    list_meta: JSONObject = {"resourceVersion": str(revision)}
    if limit and len(items) > limit:
        collection.keep(revision, tuple(collection.at(revision)))
        list_meta["continue"] = Continuation(revision, items[limit - 1].key).token()
        if not selection.by_content:
            list_meta["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return list_response(state, call, items, list_meta)
