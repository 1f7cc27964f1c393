"""From a type to the structural schema of its objects."""

from __future__ import annotations

from copy import deepcopy
from typing import Final

import msgspec
from msgspec import inspect

from mcm.api.crds.descriptions import DESCRIPTIONS
from mcm.api.crds.extras import EXTRAS, TIME, Extras
from mcm.api.meta import JSONObject
from mcm.api.nulls import is_opaque

QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_KEEP: JSONObject = {"x-kubernetes-preserve-unknown-fields": True}
_ROOT_FIELDS: dict[str, JSONObject] = {
    "apiVersion": {
        "description": "Group and version of this object's form.",
        "type": "string",
    },
    "kind": {"description": "The kind of this object.", "type": "string"},
    "metadata": {"type": "object"},
}


def root_schema(kind: type[msgspec.Struct]) -> JSONObject:
    """Return the ``openAPIV3Schema`` of a kind, given the type of its objects.

    ``metadata`` is left to the API server, which knows it better than any schema.
    """
    return deepcopy(_object(_struct(kind), _ROOT_FIELDS))


def _struct(kind: type) -> inspect.StructType:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType), kind
    return info


def _object(info: inspect.StructType, given: dict[str, JSONObject] | None = None) -> JSONObject:
    """Describe a struct; ``given`` fields stand for those of the same name."""
    extras = EXTRAS.get(info.cls, Extras())
    given = given or {}
    properties = {**extras.fields, **given}
    required = set(extras.required)
    for field in info.fields:
        name = field.encode_name
        if name in given:
            continue
        properties[name] = _decorated(_field(field, extras), name, extras)
        if field.required:
            required.add(name)
    texts = DESCRIPTIONS.get(info.cls, {})
    schema: JSONObject = {"description": texts[""]} if "" in texts else {}
    schema["type"] = "object"
    schema["properties"] = {
        name: _described(properties[name], texts.get(name)) for name in sorted(properties)
    }
    if required:
        schema["required"] = sorted(required)
    return schema


def _field(field: inspect.Field, extras: Extras) -> JSONObject:
    name = field.encode_name
    if name in extras.opaque:
        return {"type": "object", **_KEEP}
    if name in extras.described_by:
        return _object(_struct(extras.described_by[name]))
    return _type(field.type)


def _decorated(schema: JSONObject, name: str, extras: Extras) -> JSONObject:
    if name in extras.int64:
        schema["format"] = "int64"
    if name in extras.nullable:
        schema["nullable"] = True
    if name in extras.open:
        schema.update(_KEEP)
    if name in extras.atomic:
        what = "list" if schema["type"] == "array" else "map"
        schema[f"x-kubernetes-{what}-type"] = "atomic"
    return schema


def _described(schema: JSONObject, text: str | None) -> JSONObject:
    """Put a description in front; the field's own wins over that of its type."""
    return schema if text is None else {"description": text, **_without_description(schema)}


def _without_description(schema: JSONObject) -> JSONObject:
    return {key: value for key, value in schema.items() if key != "description"}


def _type(kind: inspect.Type) -> JSONObject:
    match kind:
        case inspect.StructType():
            return _object(kind)
        case inspect.StrType():
            return {"type": "string"}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", "format": "int32"}
        case inspect.DateTimeType():
            return dict(TIME)
        case inspect.VarTupleType(item_type=item):
            return {"type": "array", "items": _type(item)}
        case inspect.DictType(value_type=value):
            return {"type": "object", **_map_values(value)}
        case inspect.UnionType(types=options):
            return _union([o for o in options if not isinstance(o, inspect.NoneType)])
        case _:
            raise TypeError(f"no schema for {kind}")


def _map_values(value: inspect.Type) -> JSONObject:
    """A map of anything is somebody else's; one of int-or-string is a resource list."""
    if is_opaque(value):
        return dict(_KEEP)
    schema = _type(value)
    if "anyOf" in schema:
        schema["pattern"] = QUANTITY_PATTERN
    return {"additionalProperties": schema}


def _union(options: list[inspect.Type]) -> JSONObject:
    if len(options) == 1:
        return _type(options[0])
    if {type(o) for o in options} == {inspect.IntType, inspect.StrType}:
        choice: list[JSONObject] = [{"type": "integer"}, {"type": "string"}]
        return {"anyOf": choice, "x-kubernetes-int-or-string": True}
    raise TypeError(f"no schema for a union of {options}")
