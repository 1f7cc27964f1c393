"""Watch streams: every change of a selection from a revision on, once and in order.

A :class:`WatchStream` is fed synchronously by the store and read as chunks of whole lines. What it
holds is bounded: a reader that falls behind by more finds its stream closed, and watches again.
Whoever got the stream closes it with ``aclose()``, also when it has ended by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import final

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import StreamResponse
from mcm.sandbox.apiserver.errors import StatusCause, invalid_options, not_permitted, too_old
from mcm.sandbox.apiserver.reading.conversion import served_bytes
from mcm.sandbox.apiserver.reading.listing import named_revision, wanted_revision
from mcm.sandbox.apiserver.reading.rendering import JSON_HEADERS, rendered, table
from mcm.sandbox.apiserver.reading.selection import Selection, parse_selection
from mcm.sandbox.apiserver.requests.calls import Call, ServerState
from mcm.sandbox.apiserver.requests.negotiation import Form
from mcm.sandbox.apiserver.store import Change, ChangeType, Compacted, Stored, Unsubscribe

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark that closes a streamed list."""

_DEFAULT_TIMEOUT = 1800.0
_BEFORE_DEADLINE = 2.0
_ROUNDING = 0.01
_LINES_PER_CHUNK = 256


def watch(state: ServerState, call: Call) -> StreamResponse:
    """Start a watch. Raises StatusError (400, 410, 422), NotYetReached."""
    streams_list = _check_options(call)
    selection = parse_selection(call.info, call.target.namespace, call.query)
    timeout = call.number("timeoutSeconds")
    stream = WatchStream(
        state,
        call,
        selection,
        timeout=float(timeout) if timeout else _DEFAULT_TIMEOUT * (1 + state.random.random()),
    )
    try:
        stream.start(_beginning(state, call, stream.events, streams_list=streams_list))
    except Compacted as error:
        gone = too_old(error.revision, error.oldest)
        if state.settings.expired_watch_as_http:
            raise gone from None
        stream.start([_line(b"ERROR", orjson.dumps(gone.status()))])
        stream.end()
    return StreamResponse(200, JSON_HEADERS, stream)


def _check_options(call: Call) -> bool:
    """Return whether the current state is to be streamed first. Raises StatusError (400, 422)."""
    match = call.query.get("resourceVersionMatch", "")
    asked = bool(call.query.get("sendInitialEvents"))
    problem: StatusCause | None = None
    if asked and match != "NotOlderThan":
        problem = not_permitted(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )
    elif match and not asked:
        problem = not_permitted(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )
    if problem is not None:
        raise invalid_options("ListOptions", problem)
    if asked:
        return call.flag("sendInitialEvents")
    return call.query.get("resourceVersion", "") in ("", "0")


def _beginning(
    state: ServerState, call: Call, events: Events, *, streams_list: bool
) -> Iterable[bytes]:
    """Return the lines a watch starts with. Raises Compacted, NotYetReached, StatusError."""
    collection = state.store.collection(call.info.storage)
    if streams_list:
        wanted_revision(state, call)
        current = events.selection.current(collection)
        lines = [events.line(b"ADDED", stored) for stored in current]
        if call.query.get("sendInitialEvents") and call.flag("allowWatchBookmarks"):
            lines.append(events.bookmark(state.store.revision, ends_list=True))
        return lines
    revision = named_revision(call)
    if revision is None:
        return ()
    # All at once: a generator would read the log when it may have moved on.
    return list(events.of_changes(collection.since(revision)))


def _line(kind: bytes, encoded: bytes) -> bytes:
    return b"".join((b'{"type":"', kind, b'","object":', encoded, b"}\n"))


@final
class Events:
    """Turns changes into the lines of one watch: its selection, version and form.

    Plain lines are made once a change and version, and shared by all watches.
    """

    def __init__(self, state: ServerState, call: Call, selection: Selection) -> None:
        self.selection = selection
        self._state = state
        self._call = call
        self._plain = call.form is Form.PLAIN
        self._version = call.info.api_version
        self._headed = False

    def of_changes(self, changes: Iterable[Change]) -> Iterator[bytes]:
        for change in changes:
            line = self.of_change(change)
            if line is not None:
                yield line

    def of_change(self, change: Change) -> bytes | None:
        """Return a change as this watch sees it; None if it does not: an object that begins or
        ceases to match the selection comes and goes."""
        selection = self.selection
        matched = change.previous is not None and selection.matches(change.previous)
        matches = change.type is not ChangeType.DELETED and selection.matches(change.stored)
        if matches:
            return self._shared(change, "MODIFIED" if matched else "ADDED", change.stored)
        return self._shared(change, "DELETED", change.departed) if matched else None

    def line(self, kind: bytes, stored: Stored) -> bytes:
        if self._plain:
            return _line(kind, served_bytes(self._call.info, stored))
        return _line(kind, orjson.dumps(self._document(stored)))

    def bookmark(self, revision: int, *, ends_list: bool = False) -> bytes:
        meta: JSONObject = {"resourceVersion": str(revision)}
        if self._call.form is Form.TABLE:
            return _line(b"BOOKMARK", orjson.dumps(table(self._state, self._call, [], meta)))
        if ends_list:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        info = self._call.info
        document: JSONObject = {
            "kind": info.kind,
            "apiVersion": info.api_version,
            "metadata": meta,
        }
        if self._call.form is Form.METADATA:
            document |= {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        return _line(b"BOOKMARK", orjson.dumps(document))

    def _shared(self, change: Change, kind: str, stored: Stored) -> bytes:
        if not self._plain:
            return self.line(kind.encode(), stored)
        key = kind + self._version
        found = change.lines.get(key)
        if found is None:
            found = change.lines[key] = self.line(kind.encode(), stored)
        return found

    def _document(self, stored: Stored) -> JSONObject:
        document = rendered(self._state, self._call, stored.body)
        if self._call.form is Form.TABLE:
            if self._headed:
                document = {**document, "columnDefinitions": None}
            self._headed = True
        return document


@final
class WatchStream(AsyncIterator[bytes]):
    """The chunks of one watch. Not for two readers at once."""

    def __init__(
        self, state: ServerState, call: Call, selection: Selection, *, timeout: float
    ) -> None:
        self.events = Events(state, call, selection)
        self._state = state
        self.storage = call.info.storage
        self._bookmarks = call.flag("allowWatchBookmarks")
        self._timeout = timeout
        # Beyond the store's revision if the client has seen a newer one than we know: it then
        # hears of nothing until we get there, as upstream.
        self._after = named_revision(call) or 0
        self._lines: deque[bytes] = deque()
        self._limit = 0
        self._waiter: asyncio.Future[None] | None = None
        self._unsubscribe: Unsubscribe | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._ended = False

    def start(self, lines: Iterable[bytes]) -> None:
        """Begin with ``lines``, which do not count against the buffer, then follow the store."""
        loop = asyncio.get_running_loop()
        self._lines.extend(lines)
        self._limit = len(self._lines) + self._state.settings.watch_buffer
        self._unsubscribe = self._state.store.subscribe(self._take, self.storage)
        self._timers = [loop.call_later(self._timeout, self.end)]
        if self._bookmarks:
            self._timers.append(loop.call_later(self._next_bookmark(), self._send_bookmark))
        self._state.streams.add(self)

    def end(self) -> None:
        """Take no more events; the reader gets what is there, then the end. Idempotent."""
        self._ended = True
        self._state.streams.discard(self)
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._wake()

    def close(self) -> None:
        """End the stream and forget what was not read."""
        self.end()
        self._lines.clear()

    async def aclose(self) -> None:
        """As :meth:`close`: what whoever holds a stream of any kind may call."""
        self.close()

    async def __anext__(self) -> bytes:
        while not self._lines:
            if self._ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._chunk()

    def _chunk(self) -> bytes:
        lines = self._lines
        if len(lines) <= _LINES_PER_CHUNK:
            chunk = b"".join(lines)
            lines.clear()
            self._limit = self._state.settings.watch_buffer
            return chunk
        return b"".join([lines.popleft() for _ in range(_LINES_PER_CHUNK)])

    def _take(self, change: Change) -> None:
        if not self._ended and change.revision > self._after:
            line = self.events.of_change(change)
            if line is not None:
                self._put(line)

    def _put(self, line: bytes) -> None:
        if len(self._lines) >= self._limit:
            self.end()
            return
        self._lines.append(line)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _next_bookmark(self) -> float:
        """Return seconds to the next bookmark: by the period, and once just before the end."""
        loop = asyncio.get_running_loop()
        left = self._timers[0].when() - loop.time()
        period = self._state.settings.bookmark_period
        final_one = left - _BEFORE_DEADLINE
        return min(period, final_one) if final_one > _ROUNDING else period

    def _send_bookmark(self) -> None:
        self._put(self.events.bookmark(self._state.store.revision))
        if not self._ended:
            loop = asyncio.get_running_loop()
            self._timers[1:] = [loop.call_later(self._next_bookmark(), self._send_bookmark)]
