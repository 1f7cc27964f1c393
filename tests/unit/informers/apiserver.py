"""An API server for one resource, in memory, that breaks on demand."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, TypeVar, cast

from mcm.api import codec
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import KubeObject, Resource
from mcm.client.answers import ListPage
from mcm.client.errors import (
    ApiError,
    Cause,
    ConnectionRefused,
    Gone,
    TooLargeResourceVersion,
    TransportError,
)
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectClient

S = TypeVar("S", bound=KubeObject)
R = TypeVar("R")
JSON = dict[str, Any]

NAMESPACE = "shoot"
WHOLE_MACHINES = replace(MACHINES, in_part=False)
"""Here, as with most resources, an object that cannot be read wholly is not read at all."""
BOOKMARK_PERIOD = 60.0


class Break(Enum):
    """How a watch stream goes wrong once it has sent what it had to send at its opening."""

    CLOSE = auto()
    RESET = auto()
    TORN = auto()
    GARBAGE = auto()
    SILENCE = auto()
    EXPIRED = auto()
    ERROR_500 = auto()
    ERROR_429 = auto()
    TOO_LARGE = auto()


@dataclass(frozen=True)
class Fault:
    """What happens to the next watch: it breaks ``after`` seconds, or before sending anything, or
    where the bookmark that ends a streamed list should be."""

    kind: Break
    after: float = 0.0
    at_once: bool = False
    unfinished_list: bool = False
    unanswered: bool = False
    """Not even headers come, for longer than anybody waits."""


@dataclass
class Seen:
    """A request, as the server saw it."""

    at: float
    verb: str
    version: str
    token: str = ""
    limit: int | None = None
    streamed: bool = False


def status(code: int, reason: str, *, causes: Iterable[str] = (), retry_after: int = 0) -> JSON:
    """A Status object."""
    details: JSON = {"causes": [{"reason": cause} for cause in causes]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": f"{reason} it is",
        "details": details,
    }


def too_large() -> TooLargeResourceVersion:
    cause = Cause("ResourceVersionTooLarge", "Too large resource version", "")
    return TooLargeResourceVersion(504, "Timeout", "Too large", causes=(cause,), retry_after=1.0)


@dataclass
class ApiServer(ObjectClient):
    """Set ``list_faults`` and ``watch_faults``: each request takes the next one, if any.

    ``chunk`` is the size of the pieces streams are cut into; ``streams_lists`` whether
    ``sendInitialEvents`` is understood; ``bookmarks`` whether they are sent, ``versioned_lists``
    whether a list says its version (some aggregated servers' do not).
    """

    version: int = 100
    chunk: int = 1 << 20
    page_cap: int | None = None
    streams_lists: bool = True
    bookmarks: bool = True
    versioned_lists: bool = True
    list_faults: deque[Exception | None] = field(default_factory=deque)
    watch_faults: deque[Exception | Fault | None] = field(default_factory=deque)
    down: bool = False
    seen: list[Seen] = field(default_factory=list)
    objects: dict[str, JSON] = field(default_factory=dict)
    open_streams: int = 0
    impatient: int = 0
    """Requests that came before the Retry-After of a refusal was over."""
    on_watch: Callable[[str], None] = lambda version: None

    def __post_init__(self) -> None:
        self._history: list[tuple[int, bytes]] = []
        self._compacted = 0
        self._uids = 0
        self._snapshots: dict[str, tuple[int, list[JSON]]] = {}
        self._news = asyncio.Event()
        self._refused_until = 0.0

    # ---- content -------------------------------------------------------------------------------

    def put(self, name: str, phase: str = "", **metadata: object) -> Machine:
        """Create or update; return the object as an answer to a write would show it."""
        known = self.objects.get(name)
        if known is None:
            self._uids += 1
        uid = known["metadata"]["uid"] if known else f"uid-{self._uids}"
        obj: JSON = {
            "apiVersion": MACHINES.api_version,
            "kind": MACHINES.kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid, **metadata},
            "status": {"currentStatus": {"phase": phase}},
        }
        self.put_raw(name, obj)
        return self.machine(name)

    def put_raw(self, name: str, obj: JSON) -> None:
        self._record("MODIFIED" if name in self.objects else "ADDED", obj)
        self.objects[name] = obj

    def drop(self, name: str) -> Machine:
        gone = self.machine(name)
        obj = json.loads(json.dumps(self.objects.pop(name)))
        self._record("DELETED", obj)
        return gone

    def machine(self, name: str) -> Machine:
        return codec.decode_object(MACHINES, json.dumps(self.objects[name]).encode())

    def machines(self) -> dict[str, Machine]:
        return {f"{NAMESPACE}/{name}": self.machine(name) for name in self.objects}

    def compact(self) -> None:
        """Forget all history: watches must start at the present version. Open ones go on."""
        self._compacted = self.version
        self._snapshots.clear()

    def rewind(self, version: int) -> None:
        """Restore a backup: versions begin again from ``version``, the objects stay."""
        self.version = version
        self._history.clear()
        self._snapshots.clear()
        for obj in self.objects.values():
            obj["metadata"]["resourceVersion"] = str(version)
        self._compacted = version

    def _record(self, kind: str, obj: JSON) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._history.append((self.version, _line(kind, obj)))
        self._news.set()
        self._news = asyncio.Event()

    # ---- requests ------------------------------------------------------------------------------

    async def list_page(
        self,
        resource: Resource[S],
        *,
        namespace: str = "",
        limit: int | None = None,
        continue_token: str = "",
        resource_version: str = "",
        **_: object,
    ) -> ListPage[S]:
        self._see("list", resource_version, token=continue_token, limit=limit)
        await asyncio.sleep(0.001)  # noqa: TID251 - the virtual network's latency
        self._break(self.list_faults)
        if resource_version not in ("", "0") and int(resource_version) > self.version:
            raise too_large()
        version, items = self._snapshot(continue_token)
        limit = min(limit or len(items), self.page_cap or len(items)) if items else 0
        page, rest = items[:limit], items[limit:]
        token = f"{version}/{len(rest)}" if rest else ""
        if token:
            self._snapshots[token] = version, rest
        body = {"metadata": {"resourceVersion": str(version), "continue": token}, "items": page}
        decoded = codec.decode_list(resource, json.dumps(body).encode())
        shown = str(version) if self.versioned_lists else ""
        return ListPage(decoded.items, shown, token, len(rest), decoded.bad)

    def _snapshot(self, token: str) -> tuple[int, list[JSON]]:
        if not token:
            return self.version, list(self.objects.values())
        if token not in self._snapshots:
            raise Gone(410, "Expired", "the continue token is too old")
        return self._snapshots[token]

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[S],
        *,
        namespace: str = "",
        resource_version: str = "",
        timeout_seconds: int,
        allow_bookmarks: bool = True,
        send_initial_events: bool = False,
        read_timeout: float | None,
        **_: object,
    ) -> AsyncIterator[StreamResponse]:
        assert read_timeout is not None and allow_bookmarks
        self._see("watch", resource_version, streamed=send_initial_events)
        self.on_watch(resource_version)
        await asyncio.sleep(0.001)  # noqa: TID251 - the virtual network's latency
        fault = self._break(self.watch_faults)
        if fault and fault.unanswered:
            await asyncio.Event().wait()
        if send_initial_events and not self.streams_lists:
            raise self.invalid()
        start = int(resource_version or "0")
        if start > self.version:
            raise too_large()
        if start < self._compacted and not send_initial_events and start:
            raise Gone(410, "Expired", "too old resource version")
        lines = self._lines(start, timeout_seconds, fault, streamed=send_initial_events)
        self.open_streams += 1
        try:
            yield StreamResponse(200, {}, self._cut(lines))
        finally:
            self.open_streams -= 1

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        raise AssertionError("a reflector lists and watches, no more")

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("watches are answered above")

    @staticmethod
    def invalid() -> Exception:
        from mcm.client.errors import Invalid

        return Invalid(422, "Invalid", "sendInitialEvents is forbidden for watch")

    def _see(self, verb: str, version: str, **more: Any) -> None:
        now = asyncio.get_running_loop().time()
        self.impatient += now < self._refused_until - 1e-6  # a loop's timers round
        self.seen.append(Seen(now, verb, version, **more))

    def _refuse(self, seconds: float) -> None:
        self._refused_until = asyncio.get_running_loop().time() + seconds

    def _break(self, faults: deque[Any]) -> Fault | None:
        if self.down:
            raise ConnectionRefused("connection refused")
        fault = faults.popleft() if faults else None
        if isinstance(fault, Exception):
            # To ask for another version than one that is too new is not impatient.
            if isinstance(fault, ApiError) and not isinstance(fault, TooLargeResourceVersion):
                self._refuse(fault.retry_after or 0.0)
            raise fault
        return cast("Fault | None", fault)

    async def _lines(
        self, start: int, seconds: float, fault: Fault | None, *, streamed: bool
    ) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + (min(seconds, fault.after) if fault else seconds)
        bookmark_at = loop.time() + BOOKMARK_PERIOD
        if fault and fault.at_once:
            async for line in self._broken(fault):
                yield line
            return
        position = start
        if streamed or not start:
            position = self.version
            lines = b"".join(_line("ADDED", obj) for obj in self.objects.values())
            if fault and fault.unfinished_list:
                yield lines
                async for line in self._broken(fault):
                    yield line
                return
            yield lines + self._bookmark(ends_list=True) if streamed else lines
        while True:
            news = self._news
            lines = b"".join(line for version, line in self._history if version > position)
            position = self.version
            yield lines
            if loop.time() >= ends_at or self.down:
                break
            try:
                async with asyncio.timeout_at(min(ends_at, bookmark_at)):
                    await news.wait()
            except TimeoutError:
                if loop.time() >= bookmark_at:
                    bookmark_at += BOOKMARK_PERIOD
                    if self.bookmarks:
                        yield self._bookmark()
        if fault:
            async for line in self._broken(fault):
                yield line

    async def _broken(self, fault: Fault) -> AsyncIterator[bytes]:
        match fault.kind:
            case Break.RESET:
                raise TransportError("connection reset by peer")
            case Break.TORN:
                yield b'{"type":"ADDED","object":{"metadata":{"name":"ha'
            case Break.GARBAGE:
                yield b"<html>502 Bad Gateway</html>\n"
            case Break.SILENCE:
                await asyncio.Event().wait()
            case Break.EXPIRED:
                yield _line("ERROR", status(410, "Expired"))
            case Break.ERROR_500:
                yield _line("ERROR", status(500, "InternalError"))
            case Break.ERROR_429:
                self._refuse(7.0)
                yield _line("ERROR", status(429, "TooManyRequests", retry_after=7))
            case Break.TOO_LARGE:
                yield _line("ERROR", status(504, "Timeout", causes=["ResourceVersionTooLarge"]))

    def _bookmark(self, *, ends_list: bool = False) -> bytes:
        meta: JSON = {"resourceVersion": str(self.version), "creationTimestamp": None}
        if ends_list:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        return _line("BOOKMARK", {"kind": MACHINES.kind, "metadata": meta, "spec": {}})

    async def _cut(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            for at in range(0, len(line), self.chunk):
                yield line[at : at + self.chunk]


def _line(kind: str, obj: JSON) -> bytes:
    return json.dumps({"type": kind, "object": obj}, ensure_ascii=False).encode() + b"\n"
