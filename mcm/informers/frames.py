"""From one line of a watch to what it says.

The common frame is decoded in one typed pass. Everything that pass refuses (an object with nulls
where our types admit none, an ERROR's Status, an unknown type, garbage) goes the slow way, which
finds out what it is. One object that cannot be read is an answer too, and the stream goes on.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeAlias, final

import msgspec

from mcm.api import codec
from mcm.api.meta import ObjectMeta, Resource, T
from mcm.client.errors import ApiError, ProtocolError, error_from_status


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


_OBJECT_TYPES = (EventType.ADDED, EventType.MODIFIED, EventType.DELETED)


class Event(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object was added, modified or deleted (then ``object`` is its last state)."""

    type: EventType
    object: T


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """Everything up to ``version`` has been sent. ``ends_list``: of a streamed list, too."""

    version: str
    ends_list: bool = False


class Failure(msgspec.Struct, frozen=True):
    """An ERROR event: the watch is over."""

    error: ApiError


class Unreadable(msgspec.Struct, frozen=True):
    """An object that could not be decoded, named as far as its metadata could.

    ``type`` is the text of the wire, of whatever kind.
    """

    type: str
    key: str
    uid: str
    version: str
    reason: str


Frame: TypeAlias = Event[T] | Bookmark | Failure | Unreadable


class GarbledFrame(ProtocolError):
    """A line that is not a watch frame at all."""


@final
class FrameDecoder(Generic[T]):
    """Decodes the lines of one resource's watch."""

    __slots__ = ("_decode", "_resource")

    def __init__(self, resource: Resource[T]) -> None:
        self._resource = resource
        self._decode = msgspec.json.Decoder(Event[resource.type]).decode  # type: ignore[name-defined]

    def decode(self, line: bytes) -> Frame[T]:
        """Return what ``line`` says. Raises GarbledFrame."""
        try:
            event: Event[T] = self._decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._decode_slowly(line)
        kind = event.type
        if kind is EventType.BOOKMARK:
            return _bookmark(event.object.metadata)
        if kind is EventType.ERROR or not event.object.metadata.name:
            return self._decode_slowly(line)
        return event

    def _decode_slowly(self, line: bytes) -> Frame[T]:
        try:
            frame = codec.decode_frame(line)
        except codec.DecodeError as error:
            raise GarbledFrame(f"not a watch frame: {error}") from None
        body = bytes(frame.object)
        if frame.type == EventType.ERROR:
            return Failure(error_from_status(0, body))
        try:
            meta = codec.decode_metadata(body)
        except codec.DecodeError as error:
            return Unreadable(frame.type, error.key, "", "", str(error))
        if frame.type == EventType.BOOKMARK:
            return _bookmark(meta)
        return self._object(frame.type, meta, body)

    def _object(self, kind: str, meta: ObjectMeta, body: bytes) -> Frame[T]:
        reason = ""
        if kind not in _OBJECT_TYPES:
            reason = f"unknown type of event {kind!r}"
        elif not meta.name:
            reason = "an object without a name"
        else:
            try:
                return Event(EventType(kind), codec.decode_object(self._resource, body))
            except codec.DecodeError as error:
                reason = str(error)
        return Unreadable(kind, meta.key, meta.uid, meta.resource_version, reason)


def _bookmark(meta: ObjectMeta) -> Bookmark:
    return Bookmark(meta.resource_version, codec.ends_initial_events(meta))
