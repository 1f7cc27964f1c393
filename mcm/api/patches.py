"""Which merge patch (RFC 7396) makes an object the wanted one, and what comes of applying one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mcm.api.meta import JSONObject


def merge_diff(old: Mapping[str, object], new: Mapping[str, object]) -> JSONObject:
    """Return the smallest merge patch which turns ``old`` into ``new``; empty if they are equal.

    Lists are replaced whole, as the RFC has it. A merge patch cannot write a null member: one in
    ``new`` means absent, as does one in ``old``. Neither argument is changed, and parts of
    ``new`` may be shared with the result.
    """
    patch: JSONObject = {
        key: None for key, had in old.items() if had is not None and new.get(key) is None
    }
    for key, wanted in new.items():
        if wanted is None:
            continue
        present = old.get(key)
        if isinstance(wanted, Mapping) and isinstance(present, Mapping):
            if inner := merge_diff(present, wanted):
                patch[key] = inner
        elif not _same(present, wanted):
            patch[key] = wanted
    return patch


def merged(old: object, patch: object) -> object:
    """Return what a merge patch, decoded from JSON, makes of ``old``; neither is changed, parts may
    be shared."""
    if not isinstance(patch, dict):
        return patch
    result: JSONObject = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def explicit_zeros(difference: JSONObject) -> JSONObject:
    """Say 0 where a difference would remove a number of replicas, at any depth.

    Both mean the same to every reader, but a column of ``kubectl get`` shows an absent number as
    nothing at all.
    """
    return {key: _explicit(key, value) for key, value in difference.items()}


def zero_counters(status: msgspec.Struct) -> JSONObject:
    """Return the whole numbers of ``status`` that are 0, by their names on the wire, where they may
    be left out."""
    return {
        field.encode_name: 0
        for field in msgspec.structs.fields(status)
        if field.type is int and getattr(status, field.name) == 0
    }


def _explicit(key: str, value: object) -> object:
    if isinstance(value, dict):
        return explicit_zeros(value)
    return 0 if value is None and key.lower().endswith("replicas") else value


def _same(left: object, right: object) -> bool:
    """JSON equality: unlike Python's, a truth value never equals a number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right
