"""Pruning: what a structural schema does not specify is not stored."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds import OBJECT_META

_OF_EVERY_OBJECT = ("apiVersion", "kind")


def prune(obj: JSONObject, schema: JSONObject) -> tuple[JSONObject, list[str]]:
    """Return the object without unspecified fields, and their paths (``spec.disks[0].colour``).

    ``apiVersion``, ``kind`` and standard metadata need no specification, here and in embedded
    resources. An object that needs no pruning is returned itself.
    """
    unknown: list[str] = []
    pruned = _object(obj, {**schema, "x-kubernetes-embedded-resource": True}, "", unknown)
    return pruned, unknown


def _value(value: object, schema: JSONObject, path: str, unknown: list[str]) -> object:
    if isinstance(value, dict):
        return _object(value, schema, path, unknown)
    if isinstance(value, list):
        return _list(value, schema, path, unknown)
    return value


def _list(value: list[object], schema: JSONObject, path: str, unknown: list[str]) -> list[object]:
    items = schema.get("items")
    if not isinstance(items, dict):
        return value
    result = [_value(v, items, f"{path}[{i}]", unknown) for i, v in enumerate(value)]
    return value if all(a is b for a, b in zip(result, value, strict=True)) else result


def _object(value: JSONObject, schema: JSONObject, path: str, unknown: list[str]) -> JSONObject:
    result: JSONObject = {}
    changed = False
    for key, member in value.items():
        below = f"{path}.{key}" if path else key
        kept, known = _member(key, member, schema, below, unknown)
        if known:
            result[key] = kept
            changed = changed or kept is not member
        else:
            unknown.append(below)
            changed = True
    return result if changed else value


def _member(
    key: str, member: object, schema: JSONObject, path: str, unknown: list[str]
) -> tuple[object, bool]:
    """Return a member as pruned, and whether the schema knows it at all."""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if embedded and key in _OF_EVERY_OBJECT:
        return member, True
    if embedded and key == "metadata":
        return _metadata(member, path, unknown), True
    properties = schema.get("properties")
    if isinstance(properties, dict) and isinstance(properties.get(key), dict):
        return _value(member, properties[key], path, unknown), True
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return _value(member, additional, path, unknown), True
    return member, additional is True or preserves_unknown(schema)


def _metadata(metadata: object, path: str, unknown: list[str]) -> object:
    known = OBJECT_META["properties"]
    if not isinstance(metadata, dict) or not isinstance(known, dict):
        return metadata
    foreign = [key for key in metadata if key not in known]
    unknown += [f"{path}.{key}" for key in foreign]
    return {k: v for k, v in metadata.items() if k in known} if foreign else metadata


def preserves_unknown(schema: JSONObject) -> bool:
    return schema.get("x-kubernetes-preserve-unknown-fields") is True
