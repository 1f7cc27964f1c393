"""What a JSON merge patch (RFC 7396) makes of an object."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.equality import same_json


def apply_merge_patch(document: JSONObject, patch: JSONObject) -> JSONObject:
    """Return ``document`` with ``patch`` merged in; null removes a member (RFC 7396)."""
    return _merge_object(document, patch)


def _merge_object(target: JSONObject, patch: JSONObject) -> JSONObject:
    result: JSONObject | None = None
    for key, value in patch.items():
        if value is None:
            if key in target:
                result = dict(target) if result is None else result
                del result[key]
            continue
        merged = _merge_value(target.get(key), value)
        if key not in target or merged is not target[key]:
            result = dict(target) if result is None else result
            result[key] = merged
    return target if result is None else result


def _merge_value(target: object, patch: object) -> object:
    if isinstance(patch, dict):
        return _merge_object(target if isinstance(target, dict) else {}, patch)
    return target if same_json(target, patch) else patch
