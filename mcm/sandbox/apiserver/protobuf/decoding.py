"""From Kubernetes' protobuf envelope to JSON."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import final

import orjson

from mcm.api.meta import JSONObject
from mcm.api.timestamps import micro_time, rfc3339
from mcm.sandbox.apiserver.protobuf.messages import KINDS, MESSAGES

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

Wire = int | bytes
"""A field as it comes off the wire: a varint, or counted bytes."""


class Unsupported(ValueError):
    """The body is no such encoding, or of a kind or with a field unknown here."""


def to_json(body: bytes) -> JSONObject:
    """Decode a body with Kubernetes' envelope. Raises Unsupported."""
    if not body.startswith(_MAGIC):
        raise Unsupported("the body lacks the magic number of Kubernetes' protobuf")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    type_meta = dict(_fields(_bytes(envelope.get(1, b""))))
    api_version = _bytes(type_meta.get(1, b"")).decode()
    kind = _bytes(type_meta.get(2, b"")).decode()
    if (api_version, kind) not in KINDS and kind != "DeleteOptions":
        raise Unsupported(f"{api_version} {kind} is not understood in protobuf")
    decoded = _message(kind, _bytes(envelope.get(2, b"")))
    return {"apiVersion": api_version, "kind": kind, **decoded}


# Messages ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a message, as the table has it."""

    name: str
    type: str
    repeated: bool = False
    mapped: bool = False
    optional: bool = False
    inline: bool = False


@lru_cache
def _message_fields(name: str) -> Mapping[int, _Field]:
    """Read a message's entry in the table."""
    fields: dict[int, _Field] = {}
    for entry in MESSAGES[name].split(","):
        number, member, kind = entry.split()
        fields[int(number)] = _Field(
            name=member,
            type=kind.removeprefix("[]").removeprefix("map:").removeprefix("+").removesuffix("?"),
            repeated=kind.startswith("[]"),
            mapped=kind.startswith("map:"),
            optional=kind.endswith("?"),
            inline=kind.startswith("+"),
        )
    return MappingProxyType(fields)


def _message(name: str, data: bytes) -> JSONObject:
    known = _message_fields(name)
    result: JSONObject = {}
    for number, value in _fields(data):
        field = known.get(number)
        if field is None:
            if value:
                raise Unsupported(f"field {number} of {name} is not understood")
            continue
        if field.type != "-":
            _set(result, field, value)
    return result


def _set(result: JSONObject, field: _Field, wire: Wire) -> None:
    if field.mapped:
        entry = dict(_fields(_bytes(wire)))
        members = result.setdefault(field.name, {})
        assert isinstance(members, dict)  # made here
        key = _bytes(entry.get(1, b"")).decode()
        members[key] = _value(field.type, entry.get(2, b""))
        return
    value = _value(field.type, wire)
    if field.repeated:
        items = result.setdefault(field.name, [])
        assert isinstance(items, list)  # made here
        items.append(value)
    elif field.inline and isinstance(value, dict):
        result.update(value)
    elif value or (field.optional and value is not None):
        result[field.name] = value


def _value(kind: str, wire: Wire) -> object:
    scalar = _SCALARS.get(kind)
    return scalar(wire) if scalar is not None else _message(kind, _bytes(wire))


def _integer(wire: Wire) -> int:
    value = _varint(wire)
    return value - (1 << 64) if value >= 1 << 63 else value


def _base64(wire: Wire) -> str:
    return base64.b64encode(_bytes(wire)).decode()


def _moment(wire: Wire) -> datetime | None:
    parts = dict(_fields(_bytes(wire)))
    if not parts:
        return None
    seconds, nanos = _integer(parts.get(1, 0)), _integer(parts.get(2, 0))
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise Unsupported(f"the time {seconds} is out of range") from None


def _time(wire: Wire) -> str | None:
    moment = _moment(wire)
    return None if moment is None else rfc3339(moment)


def _micro_time(wire: Wire) -> str | None:
    moment = _moment(wire)
    return None if moment is None else micro_time(moment)


def _quantity(wire: Wire) -> str:
    return _bytes(dict(_fields(_bytes(wire))).get(1, b"0")).decode()


def _int_or_string(wire: Wire) -> int | str:
    parts = dict(_fields(_bytes(wire)))
    if _varint(parts.get(1, 0)) == 0:
        return _integer(parts.get(2, 0))
    return _bytes(parts.get(3, b"")).decode()


def _json(wire: Wire) -> object:
    try:
        return orjson.loads(_bytes(wire))
    except orjson.JSONDecodeError as error:
        raise Unsupported(f"a field holds no JSON: {error}") from None


def _text(wire: Wire) -> str:
    return _bytes(wire).decode()


def _boolean(wire: Wire) -> bool:
    return _varint(wire) != 0


_SCALARS: Mapping[str, Callable[[Wire], object]] = MappingProxyType(
    {
        "string": _text,
        "bytes": _base64,
        "int": _integer,
        "bool": _boolean,
        "time": _time,
        "microTime": _micro_time,
        "quantity": _quantity,
        "intOrString": _int_or_string,
        "json": _json,
    }
)


# The wire ------------------------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, Wire]]:
    """Yield (number, value) of each field. Raises Unsupported for a torn or foreign message."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        if wire_type == _LENGTH:
            size, at = _read_varint(data, at)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise Unsupported(f"wire type {wire_type} is not understood")
        if at + size > len(data):
            raise Unsupported("the message is cut off")
        yield number, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise Unsupported("the message is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80 and value < 1 << 64:
            return value, at
    raise Unsupported("a number has too many bytes")


def _bytes(wire: Wire) -> bytes:
    if isinstance(wire, bytes):
        return wire
    raise Unsupported("a field holds a number where bytes belong")


def _varint(wire: Wire) -> int:
    if isinstance(wire, int):
        return wire
    raise Unsupported("a field holds bytes where a number belongs")
