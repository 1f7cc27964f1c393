"""From one line of a watch to what it says.

The common frame is decoded in one typed pass. Everything that pass refuses (an object with nulls
where our types admit none, an ERROR's Status, an unknown type, garbage) goes the slow way, which
finds out what it is. One object that cannot be read is an answer too, and the stream goes on.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeAlias, final

import msgspec

from mcm.api import codec, nesting
from mcm.api.meta import ApiStruct, ObjectMeta, Resource, T
from mcm.api.names import ANNOTATION_INITIAL_EVENTS_END
from mcm.client.errors import ApiError, ProtocolError, error_from_status


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


# Before Python 3.12, finding a member by its name runs code: too dear for each event.
_BOOKMARK, _ERROR = EventType.BOOKMARK, EventType.ERROR
_OBJECT_TYPES = (EventType.ADDED, EventType.MODIFIED, EventType.DELETED)


class Event(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object was added, modified or deleted (then ``object`` is its last state)."""

    type: EventType
    object: T


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """Everything up to ``version`` has been sent. ``ends_list``: of a streamed list, too."""

    version: str
    ends_list: bool = False


class WatchError(msgspec.Struct, frozen=True):
    """An ERROR event: the watch is over."""

    error: ApiError


class Unreadable(msgspec.Struct, frozen=True):
    """An object that could not be decoded; ``key`` is empty if not even its name could.

    ``type`` is the text of the wire, of whatever kind.
    """

    type: str
    key: str
    uid: str
    version: str
    reason: str


Frame: TypeAlias = Event[T] | Bookmark | WatchError | Unreadable


class GarbledFrame(ProtocolError):
    """A line that is not a watch frame at all."""


@final
class FrameDecoder(Generic[T]):
    """Decodes the lines of one resource's watch."""

    __slots__ = ("_decode", "_may_be_deep", "_resource")

    def __init__(self, resource: Resource[T]) -> None:
        self._resource = resource
        self._decode = msgspec.json.Decoder(Event[resource.type]).decode  # type: ignore[name-defined]
        self._may_be_deep = codec.carries_payload(resource)

    def decode(self, line: bytes) -> Frame[T]:
        """Return what ``line`` says. Raises GarbledFrame."""
        if self._may_be_deep and not nesting.is_readable(line):
            return self._decode_slowly(line)
        try:
            event: Event[T] = self._decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._decode_slowly(line)
        kind = event.type
        if kind is _BOOKMARK:
            return _bookmark(event.object.metadata)
        if kind is _ERROR or not event.object.metadata.name:
            return self._decode_slowly(line)
        return event

    def _decode_slowly(self, line: bytes) -> Frame[T]:
        try:
            frame = codec.decode_frame(line)
        except codec.DecodeError as error:
            raise GarbledFrame(f"not a watch frame: {error}") from None
        body = bytes(frame.object)
        if frame.type == _ERROR:
            return WatchError(error_from_status(0, body))
        if frame.type == _BOOKMARK:
            return _bookmark(_named(body).metadata)
        if frame.type not in _OBJECT_TYPES:
            return _unreadable(frame.type, body, f"unknown type of event {frame.type!r}")
        try:
            obj = codec.read_object(self._resource, body)
        except codec.DecodeError as error:
            return _unreadable(frame.type, body, str(error))
        if not obj.metadata.name:
            return _unreadable(frame.type, body, "an object without a name")
        return Event(EventType(frame.type), obj)


class _Meta(ApiStruct, frozen=True, kw_only=True):
    """The little of any object's metadata that says which it is."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    annotations: dict[str, str] | None = None


class _Named(ApiStruct, frozen=True, kw_only=True):
    metadata: _Meta = _Meta()


_named_decoder = msgspec.json.Decoder(_Named)


def _named(body: bytes) -> _Named:
    try:
        return _named_decoder.decode(nesting.cut(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Named()


def _unreadable(kind: str, body: bytes, reason: str) -> Unreadable:
    meta = _named(body).metadata
    key = ObjectMeta(name=meta.name, namespace=meta.namespace or "").key if meta.name else ""
    return Unreadable(kind, key, meta.uid or "", meta.resource_version or "", reason)


def _bookmark(meta: ObjectMeta | _Meta) -> Bookmark:
    marks = meta.annotations or {}
    return Bookmark(
        meta.resource_version or "", ends_list=marks.get(ANNOTATION_INITIAL_EVENTS_END) == "true"
    )
