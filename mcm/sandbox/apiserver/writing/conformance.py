"""Custom resources against their structural schema: unknown fields, defaults, validation.

Only what a write touched is looked at: a patch of the status costs nothing for the spec, and an
object stored under an older schema can still lose its finalizers.
"""

from __future__ import annotations

from typing import cast

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import StatusCause, StatusError, bad_request, invalid
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.schema import apply_defaults, prune, validate
from mcm.sandbox.apiserver.store import Stored

_ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})


def conform(
    info: ResourceInfo,
    obj: JSONObject,
    live: Stored | None,
    *,
    validation: str,
    warnings: list[str],
) -> JSONObject:
    """Return ``obj`` pruned and defaulted. Kinds without a schema pass unchanged.

    ``validation`` is the request's fieldValidation: unknown fields fail it (Strict), are added to
    ``warnings`` (Warn) or vanish without a word (Ignore). Raises StatusError (400, 422).
    """
    if info.schema is None:
        return obj
    touched = _touched(obj, live)
    if touched is None:
        return _checked(info, obj, info.schema, validation, warnings)
    if not touched:
        return obj
    part = {name: value for name, value in obj.items() if name in touched or name in _ENVELOPE}
    part = _checked(info, part, _part_of_schema(info.schema, touched), validation, warnings)
    kept = {n: v for n, v in obj.items() if n not in touched or n in part}
    return {**kept, **part}


def _touched(obj: JSONObject, live: Stored | None) -> frozenset[str] | None:
    """Return the top-level fields a write changed; None if the whole object is to be checked."""
    if live is None or live.body.keys() - obj.keys():
        return None
    return frozenset(
        name
        for name, value in obj.items()
        if name not in _ENVELOPE and value is not live.body.get(name)
    )


def _part_of_schema(schema: JSONObject, names: frozenset[str]) -> JSONObject:
    properties = cast(JSONObject, schema.get("properties") or {})
    kept = {n: v for n, v in properties.items() if n in names or n in _ENVELOPE}
    return {n: v for n, v in schema.items() if n != "required"} | {"properties": kept}


def _checked(
    info: ResourceInfo,
    obj: JSONObject,
    schema: JSONObject,
    validation: str,
    warnings: list[str],
) -> JSONObject:
    obj, unknown = prune(obj, schema)
    if unknown and validation == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise bad_request(
            f'{info.kind} in version "{info.version}" cannot be handled as a {info.kind}: '
            f"strict decoding error: {listed}"
        )
    if unknown and validation == "Warn":
        warnings.extend(f'unknown field "{path}"' for path in unknown)
    obj = apply_defaults(obj, schema)
    causes = validate(obj, schema)
    if causes:
        raise _invalid(info, obj, [StatusCause(c.reason, c.message, c.field) for c in causes])
    return obj


def _invalid(info: ResourceInfo, obj: JSONObject, causes: list[StatusCause]) -> StatusError:
    name = cast(JSONObject, obj["metadata"]).get("name", "")
    return invalid(info, cast(str, name), causes)
