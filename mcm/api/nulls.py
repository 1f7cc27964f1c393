"""Dropping the nulls that Go clients write for "absent", where our types do not admit them.

Guided by the type: a payload that is carried (``providerSpec``, template metadata) keeps its nulls.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import inspect


def without_nulls(value: object, kind: type) -> object:
    """Return ``value`` (builtins, as from orjson) without the nulls that ``kind`` has no place for.

    A null list item or map value goes too. What does not fit for other reasons stays, to be
    complained about by the conversion. The argument is not changed.
    """
    return _prune(value, _described(kind))


@lru_cache(maxsize=256)
def _described(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _prune(value: object, kind: inspect.Type) -> object:
    for option in _options(kind):
        if isinstance(option, inspect.StructType) and isinstance(value, dict):
            return _prune_struct(value, option)
        if isinstance(option, inspect.DictType) and isinstance(value, dict):
            return _prune_map(value, option.value_type)
        if isinstance(option, inspect.VarTupleType) and isinstance(value, list):
            kept = (item for item in value if item is not None or _admits_null(option.item_type))
            return [_prune(item, option.item_type) for item in kept]
    return value


def _prune_struct(value: dict[str, object], kind: inspect.StructType) -> dict[str, object]:
    known = {field.encode_name: field.type for field in kind.fields}
    return {
        key: _prune(item, known[key]) if key in known else item
        for key, item in value.items()
        if item is not None or key not in known or _admits_null(known[key])
    }


def _prune_map(value: dict[str, object], kind: inspect.Type) -> dict[str, object]:
    kept = ((k, v) for k, v in value.items() if v is not None or _admits_null(kind))
    return {key: _prune(item, kind) for key, item in kept}


def _options(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _admits_null(kind: inspect.Type) -> bool:
    return any(isinstance(o, inspect.NoneType) or is_opaque(o) for o in _options(kind))


def is_opaque(kind: inspect.Type) -> bool:
    """Tell whether values of a type are carried and not interpreted (``object``)."""
    return isinstance(kind, inspect.AnyType) or (
        isinstance(kind, inspect.CustomType) and kind.cls is object
    )
