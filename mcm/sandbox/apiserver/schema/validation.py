"""Validation of a value against a structural schema: every violation at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.equality import same_json
from mcm.sandbox.apiserver.schema.causes import (
    FieldCause,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    wrong_type,
)
from mcm.sandbox.apiserver.schema.formats import conforms

__all__ = ["FieldCause", "validate"]

_INTEGER_BITS = {"int32": 31, "int64": 63}


def validate(obj: JSONObject, schema: JSONObject) -> list[FieldCause]:
    """Return every violation in ``obj``, in the order of its fields; empty if it is valid."""
    return list(_value(obj, schema, ""))


def _value(value: object, schema: JSONObject, path: str) -> Iterator[FieldCause]:
    wrong = _type_violation(value, schema, path)
    if wrong is not None:
        yield wrong
        return
    if value is None:
        return
    yield from _enumerated(value, schema, path)
    yield from _combined(value, schema, path)
    if isinstance(value, dict):
        yield from _object(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path)
    elif isinstance(value, str):
        yield from _string(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, schema, path)


# Types ---------------------------------------------------------------------------------------


def _type_violation(value: object, schema: JSONObject, path: str) -> FieldCause | None:
    if value is None and schema.get("nullable"):
        return None
    expected = schema.get("type")
    actual = _type_of(value)
    if schema.get("x-kubernetes-int-or-string"):
        fits = actual in ("integer", "string")
        return None if fits else wrong_type(path, "integer,string", actual)
    if not isinstance(expected, str) or _fits(value, actual, expected):
        return _size_violation(value, schema, path)
    return wrong_type(path, expected, actual)


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _fits(value: object, actual: str, expected: str) -> bool:
    if actual == expected:
        return True
    if expected == "number":
        return actual == "integer"
    return expected == "integer" and isinstance(value, float) and value.is_integer()


def _size_violation(value: object, schema: JSONObject, path: str) -> FieldCause | None:
    bits = _INTEGER_BITS.get(str(schema.get("format")))
    if bits is None or not isinstance(value, int) or isinstance(value, bool):
        return None
    if -(1 << bits) <= value < 1 << bits:
        return None
    return wrong_type(path, str(schema["format"]), "int64" if bits == 31 else "number")


# Any value -----------------------------------------------------------------------------------


def _enumerated(value: object, schema: JSONObject, path: str) -> Iterator[FieldCause]:
    allowed = schema.get("enum")
    if isinstance(allowed, list) and not any(same_json(value, a) for a in allowed):
        yield not_supported(path, value, allowed)


def _combined(value: object, schema: JSONObject, path: str) -> Iterator[FieldCause]:
    """allOf, anyOf, oneOf and not; what they say of types was said by the schema around them."""
    if "allOf" in schema and not all(_passes(value, schema, "allOf")):
        for alternative in _alternatives(schema, "allOf"):
            yield from _value(value, alternative, path)
    if "anyOf" in schema and not any(_passes(value, schema, "anyOf")):
        yield _mismatch(path, "must validate at least one schema (anyOf)")
    if "oneOf" in schema and sum(_passes(value, schema, "oneOf")) != 1:
        yield _mismatch(path, "must validate one and only one schema (oneOf)")
    negated = schema.get("not")
    if isinstance(negated, dict) and not validate_value(value, negated):
        yield _mismatch(path, "must not validate the schema (not)")


def _mismatch(path: str, rule: str) -> FieldCause:
    return invalid(path, "", f"{path or '.'} in body {rule}")


def _alternatives(schema: JSONObject, name: str) -> list[JSONObject]:
    found = schema.get(name)
    return [s for s in found if isinstance(s, dict)] if isinstance(found, list) else []


def _passes(value: object, schema: JSONObject, name: str) -> list[bool]:
    return [not validate_value(value, s) for s in _alternatives(schema, name)]


def validate_value(value: object, schema: JSONObject) -> list[FieldCause]:
    """The same for a value that is no whole object."""
    return list(_value(value, schema, ""))


# Objects and lists ---------------------------------------------------------------------------


def _object(value: JSONObject, schema: JSONObject, path: str) -> Iterator[FieldCause]:
    names = schema.get("required")
    for name in names if isinstance(names, list) else ():
        if name not in value:
            yield required(_below(path, str(name)))
    if schema.get("x-kubernetes-embedded-resource"):
        for name in ("apiVersion", "kind"):
            if not value.get(name):
                yield required(_below(path, name), "must not be empty")
    yield from _object_size(value, schema, path)
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    additional = schema.get("additionalProperties")
    for key, member in value.items():
        subschema = properties.get(key, additional)
        if isinstance(subschema, dict):
            yield from _value(member, subschema, _below(path, key))


def _object_size(value: JSONObject, schema: JSONObject, path: str) -> Iterator[FieldCause]:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if isinstance(most, int) and len(value) > most:
        yield too_many(path, len(value), most)
    if isinstance(least, int) and len(value) < least:
        rule = f"{path or '.'} in body should have at least {least} properties"
        yield invalid(path, len(value), rule)


def _list(value: list[object], schema: JSONObject, path: str) -> Iterator[FieldCause]:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if isinstance(most, int) and len(value) > most:
        yield too_many(path, len(value), most)
    if isinstance(least, int) and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    yield from _duplicates(value, schema, path)
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _value(item, items, f"{path}[{index}]")


def _duplicates(value: list[object], schema: JSONObject, path: str) -> Iterator[FieldCause]:
    list_type = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys")
    if list_type not in ("set", "map") and not schema.get("uniqueItems"):
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        identity = item
        if list_type == "map" and isinstance(item, dict) and isinstance(keys, list):
            identity = {key: item.get(key) for key in keys if key in item}
        text = json.dumps(identity, sort_keys=True)
        if text in seen:
            yield duplicate(f"{path}[{index}]", identity)
        seen.add(text)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


# Scalars -------------------------------------------------------------------------------------


def _string(value: str, schema: JSONObject, path: str) -> Iterator[FieldCause]:
    most, least = schema.get("maxLength"), schema.get("minLength")
    if isinstance(most, int) and len(value) > most:
        yield too_long(path, most)
    if isinstance(least, int) and len(value) < least:
        yield invalid(path, value, f"{path} in body should be at least {least} chars long")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not _matches(pattern, value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")
    name = schema.get("format")
    if isinstance(name, str) and not conforms(value, name):
        yield wrong_type(path, name, value)


def _matches(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Compile a pattern of Go's dialect; None for the few that Python does not understand."""
    try:
        return re.compile(pattern.replace(r"\z", r"\Z"))
    except re.error:
        return None


def _number(value: float, schema: JSONObject, path: str) -> Iterator[FieldCause]:
    most, least = schema.get("maximum"), schema.get("minimum")
    if isinstance(most, int | float):
        if schema.get("exclusiveMaximum") and value >= most:
            yield invalid(path, value, f"{path} in body should be less than {most}")
        elif value > most:
            yield invalid(path, value, f"{path} in body should be less than or equal to {most}")
    if isinstance(least, int | float):
        if schema.get("exclusiveMinimum") and value <= least:
            yield invalid(path, value, f"{path} in body should be greater than {least}")
        elif value < least:
            yield invalid(path, value, f"{path} in body should be greater than or equal to {least}")
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step > 0 and value % step:
        yield invalid(path, value, f"{path} in body should be a multiple of {step}")
