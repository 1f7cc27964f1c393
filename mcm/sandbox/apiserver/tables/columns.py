"""Columns: a heading and how to fill a cell from an object."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.registry import PrinterColumn
from mcm.sandbox.apiserver.tables.ages import age_of
from mcm.sandbox.apiserver.tables.jsonpath import PathError, find_all

NONE = "<none>"


@final
@dataclass(frozen=True, slots=True)
class View:
    """An object to be shown, at a moment."""

    obj: JSONObject
    now: datetime

    def at(self, *path: str) -> object:
        """Return what is at a path of member names; None if nothing is."""
        value: object = self.obj
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def text(self, *path: str, missing: str = "") -> str:
        value = self.at(*path)
        return missing if value is None or value == "" else str(value)

    def count(self, *path: str) -> int:
        value = self.at(*path)
        return value if isinstance(value, int) else 0

    def size(self, *path: str) -> int:
        value = self.at(*path)
        return len(value) if isinstance(value, dict | list) else 0

    def objects(self, *path: str) -> list[JSONObject]:
        value = self.at(*path)
        return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []

    def texts(self, *path: str) -> list[str]:
        value = self.at(*path)
        return [str(v) for v in value] if isinstance(value, list) else []

    def pairs(self, *path: str) -> str:
        """Write a map of texts as ``a=b,c=d``."""
        value = self.at(*path)
        if not isinstance(value, dict) or not value:
            return NONE
        return ",".join(f"{k}={v}" for k, v in sorted(value.items()))

    def age(self, *path: str) -> str:
        return age_of(self.at(*path), self.now)

    @property
    def name(self) -> str:
        return self.text("metadata", "name")

    @property
    def terminating(self) -> bool:
        return self.at("metadata", "deletionTimestamp") is not None


Cell = Callable[[View], object]


@final
@dataclass(frozen=True, slots=True)
class Column:
    """``priority`` above 0: shown in wide output only. ``type`` and ``format`` as in OpenAPI."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> JSONObject:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


NAME = Column("Name", lambda view: view.name, format="name", description="The object's name.")
AGE = Column(
    "Age",
    lambda view: view.age("metadata", "creationTimestamp"),
    description="Time since the object was created.",
)


def wide(name: str, cell: Cell) -> Column:
    return Column(name, cell, priority=1)


def integer(name: str, *path: str) -> Column:
    return Column(name, lambda view: view.count(*path), type="integer")


def custom_columns(columns: Sequence[PrinterColumn]) -> tuple[Column, ...]:
    """The columns of a custom resource, as its definition asks for them."""
    return (NAME, *map(_custom_column, columns))


def _custom_column(column: PrinterColumn) -> Column:
    def cell(view: View) -> object:
        try:
            found = find_all(column.json_path, view.obj)
        except PathError:
            return None
        return _shown(found[0], column.type, view.now) if found else None

    return Column(
        column.name,
        cell,
        type=column.type,
        format=column.format,
        priority=column.priority,
        description=column.description or f"The value at {column.json_path}.",
    )


def _shown(value: object, kind: str, now: datetime) -> object:
    """Return a value as a cell of the column's type; null where it does not fit."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            return _as_text(value)
        case "integer":
            return int(value) if is_number and isinstance(value, int | float) else None
        case "number":
            return float(value) if is_number and isinstance(value, int | float) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return age_of(value, now) if isinstance(value, str) else None
        case _:
            return None


def _as_text(value: object) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
