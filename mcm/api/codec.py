"""Turns bytes into objects and objects into bytes.

The fast path is one typed msgspec decoder for each type. Where that fails, the body is parsed
again without types, the nulls that Go clients write for "absent" are dropped, and conversion is
tried once more. What still fails raises :class:`DecodeError`, which names object and field; in a
list it costs only that item. Of resources that may be read in part (:class:`mcm.api.meta.Resource`)
what can be read is returned, and its metadata say what could not.

Measured on CPython 3.11 with a list of 10,000 Machines of 4.1 kB, managedFields and six conditions
included: 10 to 16 µs and 5.5 KiB an object, against 17.7 KiB as dicts. Without the shared texts of
conditions (:mod:`mcm.api.interning`) it is 8 to 12 µs and 6.4 KiB. Sharing all repeated texts
(types, statuses, labels, owners, class and namespace too) would give 3.4 KiB, at several times the
cost and much more code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, final

import msgspec
import msgspec.inspect
import orjson

from mcm.api import nesting
from mcm.api.core import Node, Pod
from mcm.api.interning import share_condition_texts, share_parts_of_pod
from mcm.api.machine import Machine
from mcm.api.meta import ApiStruct, Fault, JSONObject, KubeObject, ObjectMeta, Resource, T
from mcm.api.names import ANNOTATION_INITIAL_EVENTS_END
from mcm.api.nulls import without_nulls
from mcm.api.salvage import salvaged

Body = bytes | bytearray | memoryview | msgspec.Raw


@final
class DecodeError(ValueError):
    """A body that does not have the form of its type.

    ``path`` is the JSON path of the field from the object's root (empty: the whole body), ``key``
    the object's ``namespace/name`` as far as it could be read.
    """

    def __init__(self, resource: str, detail: str, *, path: str = "", key: str = "") -> None:
        self.resource = resource
        self.detail = detail
        self.path = path
        self.key = key
        what = f"{resource} {key!r}" if key else resource
        super().__init__(f"{what}: {path}: {detail}" if path else f"{what}: {detail}")


class ListMeta(ApiStruct, frozen=True, kw_only=True):
    """``metadata`` of a list: its version, and where the next page starts if there is one."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


@final
@dataclass(frozen=True, slots=True)
class BadObject:
    """A list item that could not be decoded."""

    metadata: ObjectMeta
    error: DecodeError


@final
@dataclass(frozen=True, slots=True)
class DecodedList(Generic[T]):
    """One page of a list: the good items in the server's order, and the bad ones apart."""

    items: tuple[T, ...]
    metadata: ListMeta
    bad: tuple[BadObject, ...] = ()


class WatchFrame(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch. ``object`` is still bytes, a view into the line: decode it, drop it."""

    type: str
    object: msgspec.Raw


class _RawList(ApiStruct, frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    # Go writes null for an empty list.
    items: tuple[msgspec.Raw, ...] | None = None


class _Identity(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _Names(msgspec.Struct, frozen=True):
    """The least that names an object, for those whose metadata is broken elsewhere."""

    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Names = _Names()


# RecursionError: what is nested deeper than a parser goes, in fields that are not ours to read.
_FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_encoder = msgspec.json.Encoder()
_frames = msgspec.json.Decoder(WatchFrame)
_raw_lists = msgspec.json.Decoder(_RawList)
_identities = msgspec.json.Decoder(_Identity)
_names = msgspec.json.Decoder(_Named)


# Objects ------------------------------------------------------------------------------------------


def decoder_for(resource: Resource[T]) -> msgspec.json.Decoder[T]:
    """Return the strict decoder of a resource's objects, made once for each type."""
    decoder: msgspec.json.Decoder[T] = _decoder(resource.type)
    return decoder


def decode_object(resource: Resource[T], body: Body) -> T:
    """Decode one object, tolerating misplaced nulls. Raises DecodeError."""
    if carries_payload(resource) and not nesting.is_readable(whole := bytes(body)):
        raise DecodeError(resource.name, "nested too deep to be read", key=_key_of(whole))
    try:
        obj = decoder_for(resource).decode(body)
    except _FAILURES:
        obj = _decode_tolerantly(resource, nesting.readable(bytes(body)))
    return _shared(obj)


def carries_payload(resource: Resource[T]) -> bool:
    """Tell whether objects carry JSON of whatever form: it is read as deep as it goes.

    Elsewhere what is nested deep is in fields that are skipped; of its own kinds the API server
    knows every field.
    """
    return resource.in_part and holds_payload(resource.type)


@lru_cache(maxsize=256)
def holds_payload(kind: type) -> bool:
    """Tell whether a type has, however deep, a field for JSON of whatever form."""
    left: list[object] = [msgspec.inspect.type_info(kind)]
    seen: set[type] = set()
    while left:
        info = left.pop()
        if isinstance(info, msgspec.inspect.CustomType) and info.cls is object:
            return True
        if isinstance(info, msgspec.inspect.StructType) and info.cls not in seen:
            seen.add(info.cls)
            left += [field.type for field in info.fields]
        elif isinstance(info, msgspec.inspect.DictType):
            left.append(info.value_type)
        elif isinstance(info, msgspec.inspect.UnionType):
            left += info.types
        elif isinstance(info, msgspec.inspect.VarTupleType | msgspec.inspect.ListType):
            left.append(info.item_type)
    return False


def read_object(resource: Resource[T], body: Body) -> T:
    """Decode one object as far as it can be read, if its resource may be read in part.

    Raises DecodeError if it may not, or if not even its name can be read.
    """
    try:
        return decode_object(resource, body)
    except DecodeError:
        if not resource.in_part:
            raise
        return _shared(_read_in_part(resource, bytes(body)))


def _read_in_part(resource: Resource[T], body: bytes) -> T:
    try:
        parsed = orjson.loads(nesting.cut(body))
        obj, faults = salvaged(without_nulls(parsed, resource.type), resource.type)
    except orjson.JSONDecodeError as error:
        raise DecodeError(resource.name, f"not JSON: {error}") from None
    except msgspec.ValidationError as error:
        detail, path = located(error)
        raise DecodeError(resource.name, detail, path=path, key=_key_of(body)) from None
    if where := nesting.where_cut(parsed):
        faults = (*faults, Fault(path=where, detail="Nested too deep to be read"))
    if not obj.metadata.name:
        raise DecodeError(resource.name, "an object without a name", path="metadata.name")
    # What was just made belongs to nobody else yet.
    msgspec.structs.force_setattr(obj.metadata, "faults", faults)
    return obj


def decode_metadata(body: Body) -> ObjectMeta:
    """Read only the metadata, of an object of whatever kind. Raises DecodeError."""
    try:
        try:
            return _identities.decode(body).metadata
        except RecursionError:
            return _identities.decode(nesting.cut(bytes(body))).metadata
    except _FAILURES as error:
        detail, path = located(error)
        raise DecodeError("object", detail, path=path, key=_key_of(body)) from None


def encode(obj: msgspec.Struct | KubeObject | Mapping[str, object]) -> bytes:
    """Encode a typed object, or a JSON object that may hold typed parts.

    Fields with their default value are left out, as Go's ``omitempty`` does. Fields which the type
    does not declare are not there: never write a decoded object back whole, write a patch.
    """
    return _encoder.encode(obj)


def to_json_object(obj: msgspec.Struct | KubeObject) -> JSONObject:
    """Return the object as :func:`encode` would write it, parsed: what a patch is computed from."""
    parsed: JSONObject = orjson.loads(_encoder.encode(obj))
    return parsed


def _decode_tolerantly(resource: Resource[T], body: bytes) -> T:
    try:
        parsed = orjson.loads(body)
        return msgspec.convert(without_nulls(parsed, resource.type), resource.type)
    except orjson.JSONDecodeError as error:
        raise DecodeError(resource.name, f"not JSON: {error}") from None
    except msgspec.ValidationError as error:
        detail, path = located(error)
        raise DecodeError(resource.name, detail, path=path, key=_key_of(body)) from None


def _shared(obj: T) -> T:
    """Let an object that was just decoded share its repeated texts with the others."""
    if isinstance(obj, Machine | Node):
        share_condition_texts(obj.status.conditions)
    elif isinstance(obj, Pod):
        share_parts_of_pod(obj)
    return obj


@lru_cache(maxsize=64)
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind)


def located(error: Exception) -> tuple[str, str]:
    """Split msgspec's text into what is wrong and the JSON path, without its leading ``$.``."""
    detail, _, path = str(error).partition(" - at `$")
    return detail, path.rstrip("`").removeprefix(".")


def _key_of(body: Body) -> str:
    try:
        names = _names.decode(nesting.readable(bytes(body))).metadata
    except _FAILURES:
        return ""
    return ObjectMeta(name=names.name, namespace=names.namespace).key


# Lists --------------------------------------------------------------------------------------------


def decode_list(resource: Resource[T], body: Body) -> DecodedList[T]:
    """Decode one page of a list. Raises DecodeError if the page itself is not a list.

    Items are decoded one by one, for a quarter more than all at once would cost: a bad one costs
    no other, and the texts that sharing frees make room for the next item's at once. Freed at the
    end they leave holes, the next list settles in them, and between two lists memory that could
    have been given back stays (half as much again as a fleet takes).
    """
    try:
        page = _page_in(body)
    except _FAILURES as error:
        detail, path = located(error)
        raise DecodeError(f"list of {resource.name}", detail, path=path) from None
    items: list[T] = []
    bad: list[BadObject] = []
    for raw in page.items or ():
        try:
            items.append(read_object(resource, raw))
        except DecodeError as error:
            bad.append(BadObject(_metadata_or_empty(raw), error))
    return DecodedList(tuple(items), page.metadata, tuple(bad))


def _page_in(body: Body) -> _RawList:
    """Split a page into items, also where one is nested deeper than the parser goes."""
    try:
        return _raw_lists.decode(body)
    except RecursionError:
        outer, items = nesting.lifted(bytes(body), "items")
        page = _raw_lists.decode(outer)
        raw = tuple(msgspec.Raw(item) for item in nesting.elements(items))
        return msgspec.structs.replace(page, items=raw)


def _metadata_or_empty(raw: msgspec.Raw) -> ObjectMeta:
    """Read as much of the metadata as can be read."""
    try:
        return decode_metadata(raw)
    except DecodeError as error:
        namespace, _, name = error.key.rpartition("/")
        return ObjectMeta(name=name, namespace=namespace)


# Watch frames -------------------------------------------------------------------------------------


def decode_frame(line: bytes | bytearray | memoryview) -> WatchFrame:
    """Decode the envelope of one line of a watch stream. Raises DecodeError."""
    try:
        try:
            return _frames.decode(line)
        except RecursionError:
            outer, inner = nesting.lifted(bytes(line), "object")
            frame = _frames.decode(outer)
            return msgspec.structs.replace(frame, object=msgspec.Raw(inner))
    except _FAILURES as error:
        detail, path = located(error)
        raise DecodeError("watch event", detail, path=path) from None


def ends_initial_events(metadata: ObjectMeta) -> bool:
    """Tell whether this is the metadata of the BOOKMARK that ends a streamed list."""
    return metadata.annotations.get(ANNOTATION_INITIAL_EVENTS_END) == "true"
