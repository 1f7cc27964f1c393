"""Reading what can be read of a JSON value that does not wholly have the form of its type.

Guided by the type, as :mod:`mcm.api.nulls` is: a part that does not fit is left out, all others
stay, and each fault is named with its path. A number or truth value where a text belongs becomes
that text: it still names what it was meant to name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final, final

import msgspec
from msgspec import inspect

from mcm.api.meta import Fault, T

_LEFT_OUT: Final = object()
_MOST_FAULTS = 20
"""Faults that are named; whoever mends these learns of the others."""


def salvaged(value: object, kind: type[T]) -> tuple[T, tuple[Fault, ...]]:
    """Convert ``value`` (builtins, without nulls) as far as it fits ``kind``.

    Raises msgspec.ValidationError if nothing of it does: it is no object, or lacks what no value of
    ``kind`` can be without.
    """
    reading = _Reading()
    fitting = reading.fit(value, _described(kind), "")
    return msgspec.convert(fitting, kind), tuple(reading.faults[:_MOST_FAULTS])


@lru_cache(maxsize=64)
def _described(kind: type[T]) -> inspect.Type:
    return inspect.type_info(kind)


_NAMES: Mapping[type[inspect.Type], str] = {
    inspect.StructType: "object",
    inspect.DictType: "object",
    inspect.VarTupleType: "array",
    inspect.StrType: "str",
    inspect.IntType: "int",
    inspect.BoolType: "bool",
    inspect.FloatType: "float",
    inspect.DateTimeType: "timestamp",
}
_LEAVES: Mapping[type[inspect.Type], tuple[type, ...]] = {
    inspect.StrType: (str,),
    inspect.IntType: (int,),
    inspect.BoolType: (bool,),
    inspect.FloatType: (float, int),
}


@final
class _Reading:
    """One value on its way through its type; collects faults in the order of the fields."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fit(self, value: object, kind: inspect.Type, path: str) -> object:
        """Return as much of ``value`` as fits, or ``_LEFT_OUT``."""
        match kind:
            case inspect.UnionType():
                return self._union(value, kind, path)
            case inspect.StructType() if isinstance(value, dict):
                return self._struct(value, kind, path)
            case inspect.DictType() if isinstance(value, dict):
                return self._map(value, kind.value_type, path)
            case inspect.VarTupleType() if isinstance(value, list):
                fitting = [
                    self.fit(item, kind.item_type, f"{path}[{i}]") for i, item in enumerate(value)
                ]
                return [item for item in fitting if item is not _LEFT_OUT]
            case _ if _fits(value, kind):
                return value
        self._complain(path, f"Expected `{_name(kind)}`, got `{_name_of(value)}`")
        return _as_text(value) if isinstance(kind, inspect.StrType) else _LEFT_OUT

    def _union(self, value: object, kind: inspect.UnionType, path: str) -> object:
        options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
        if (value is None and len(options) < len(kind.types)) or any(
            _fits(value, option) for option in options
        ):
            return value
        return self.fit(value, options[0], path)

    def _struct(self, value: dict[str, object], kind: inspect.StructType, path: str) -> object:
        fitting: dict[str, object] = {}
        for field in kind.fields:
            at = f"{path}.{field.encode_name}".removeprefix(".")
            if field.encode_name in value:
                found = self.fit(value[field.encode_name], field.type, at)
                if found is not _LEFT_OUT:
                    fitting[field.encode_name] = found
            elif field.required:
                self._complain(at, "Required")
            if field.required and field.encode_name not in fitting:
                return _LEFT_OUT
        return fitting

    def _map(self, value: dict[str, object], kind: inspect.Type, path: str) -> object:
        fitting = {key: self.fit(item, kind, f"{path}[{key}]") for key, item in value.items()}
        return {key: item for key, item in fitting.items() if item is not _LEFT_OUT}

    def _complain(self, path: str, detail: str) -> None:
        self.faults.append(Fault(path=path, detail=detail))


def _fits(value: object, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.AnyType | inspect.CustomType):
        return True
    if isinstance(kind, inspect.DateTimeType):
        return _is_timestamp(value)
    leaves = _LEAVES.get(type(kind), ())
    return isinstance(value, leaves) and (bool in leaves or not isinstance(value, bool))


def _is_timestamp(value: object) -> bool:
    try:
        msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return False
    return isinstance(value, str)


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else _LEFT_OUT


def _name(kind: inspect.Type) -> str:
    return _NAMES.get(type(kind), "value")


def _name_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    return type(value).__name__
