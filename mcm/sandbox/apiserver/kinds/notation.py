"""A short notation for OpenAPI schemas, with the extensions that say how lists and objects merge.

Objects stay open (``x-kubernetes-preserve-unknown-fields``): the notation lists the fields whose
merging matters or that people look up, and lets the others through.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.meta import JSONObject

STRING: JSONObject = {"type": "string"}
INTEGER: JSONObject = {"type": "integer", "format": "int32"}
LONG: JSONObject = {"type": "integer", "format": "int64"}
BOOLEAN: JSONObject = {"type": "boolean"}
TIME: JSONObject = {"type": "string", "format": "date-time"}
INT_OR_STRING: JSONObject = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "format": "int-or-string",
    "x-kubernetes-int-or-string": True,
}
QUANTITY: JSONObject = {
    "anyOf": [{"type": "string"}, {"type": "number"}],
    "x-kubernetes-int-or-string": True,
}
ANY_OBJECT: JSONObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def described(schema: Mapping[str, object], text: str) -> JSONObject:
    """Return the schema with a description, as ``kubectl explain`` shows it."""
    return {**schema, "description": text}


def struct(fields: Mapping[str, JSONObject], *, description: str = "") -> JSONObject:
    schema: JSONObject = {**ANY_OBJECT, "properties": dict(fields)}
    return described(schema, description) if description else schema


def atomic(schema: Mapping[str, object]) -> JSONObject:
    """An object that has one owner as a whole (strategic patches merge it all the same)."""
    return {**schema, "x-kubernetes-map-type": "atomic"}


def map_of(value: JSONObject) -> JSONObject:
    return {"type": "object", "additionalProperties": value}


def list_of(item: JSONObject) -> JSONObject:
    """A list that is replaced as a whole."""
    return {"type": "array", "items": item, "x-kubernetes-list-type": "atomic"}


def set_of(item: JSONObject) -> JSONObject:
    """A list of distinct scalars that merge."""
    return {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "set",
        "x-kubernetes-patch-strategy": "merge",
    }


def owned_by_key(item: JSONObject, *keys: str) -> JSONObject:
    """A list whose elements have owners of their own, told apart by ``keys``; a strategic patch
    replaces it."""
    return {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


def keyed_list(item: JSONObject, *keys: str, retain_keys: bool = False) -> JSONObject:
    """The same, and a strategic patch merges it by the first key. ``retain_keys``: such a patch
    may name the members of an element that stay."""
    return {
        **owned_by_key(item, *keys),
        "x-kubernetes-patch-merge-key": keys[0],
        "x-kubernetes-patch-strategy": "merge,retainKeys" if retain_keys else "merge",
    }


def patch_list(item: JSONObject, patch_key: str) -> JSONObject:
    """A list that merges by key in strategic patches, but has one owner as a whole."""
    return {
        **list_of(item),
        "x-kubernetes-patch-merge-key": patch_key,
        "x-kubernetes-patch-strategy": "merge",
    }


def strings(*names: str) -> dict[str, JSONObject]:
    return dict.fromkeys(names, STRING)


def integers(*names: str) -> dict[str, JSONObject]:
    return dict.fromkeys(names, INTEGER)


def booleans(*names: str) -> dict[str, JSONObject]:
    return dict.fromkeys(names, BOOLEAN)
