"""Equality of JSON values, which is not Python's: true is no number."""

from __future__ import annotations


def same_json(left: object, right: object) -> bool:
    """Compare as JSON does: 1 equals 1.0, but true never equals 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(v, right[k]) for k, v in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return left == right
