"""Defaulting: absent fields take the values their schema names."""

from __future__ import annotations

from mcm.api.meta import JSONObject


def apply_defaults(obj: JSONObject, schema: JSONObject) -> JSONObject:
    """Return the object with defaults filled in, at every depth that exists.

    A null where null is not allowed counts as absent if there is a default. Defaults of an object's
    members appear only if the object is there, by itself or by its own default.
    """
    return _object(obj, schema)


def _object(value: JSONObject, schema: JSONObject) -> JSONObject:
    result: JSONObject | None = None
    for key, member, subschema in _members(value, schema):
        defaulted = _value(member, subschema)
        if key not in value or defaulted is not value[key]:
            result = dict(value) if result is None else result
            result[key] = defaulted
    return value if result is None else result


def _members(value: JSONObject, schema: JSONObject) -> list[tuple[str, object, JSONObject]]:
    """Pair up members, or the defaults that stand in for them, with their schemas."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    found: list[tuple[str, object, JSONObject]] = []
    for key, subschema in properties.items():
        if "default" in subschema and _is_missing(key, value, subschema):
            found.append((key, subschema["default"], subschema))
        elif key in value:
            found.append((key, value[key], subschema))
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        found += [(k, v, additional) for k, v in value.items() if k not in properties]
    return found


def _is_missing(key: str, value: JSONObject, subschema: JSONObject) -> bool:
    return value.get(key) is None and (key not in value or not subschema.get("nullable"))


def _value(value: object, schema: JSONObject) -> object:
    if isinstance(value, dict):
        return _object(value, schema)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        result = [_value(item, items) for item in value]
        return value if all(a is b for a, b in zip(result, value, strict=True)) else result
    return value
