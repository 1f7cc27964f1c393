"""Whether what a driver returned is what its verb promises; drivers need not be type-checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from mcm.api.core import NodeAddress
from mcm.api.machine import MachineClass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def flaw_in(response: object, promised: type[DataclassInstance]) -> str:
    """Name the first thing about ``response`` that is not as promised; empty: nothing is."""
    if not isinstance(response, promised):
        return f"returned {_kind(response)} instead of {promised.__name__}"
    for field in fields(promised):
        value: object = getattr(response, field.name)
        if not _fits(field.name, value):
            return f"returned {promised.__name__} with {_kind(value)} as {field.name}"
    return ""


def _fits(name: str, value: object) -> bool:
    match name:
        case "addresses":
            return isinstance(value, tuple) and all(isinstance(a, NodeAddress) for a in value)
        case "volume_ids":
            return isinstance(value, tuple) and all(isinstance(id_, str) for id_ in value)
        case "machine_class":
            return isinstance(value, MachineClass)
        case "machines":
            return isinstance(value, Mapping) and all(
                isinstance(text, str) for pair in value.items() for text in pair
            )
        case _:
            return isinstance(value, str)


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
