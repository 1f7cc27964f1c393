"""One fault of an object: the field, what stood there, and what belongs there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, final

from mcm.api.meta import ObjectMeta

_MOST_SHOWN = 80


class ErrorKind(StrEnum):
    REQUIRED = "Required"
    INVALID = "Invalid"


@final
@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault. ``field`` is the JSON path from the object's root, ``value`` what stood there."""

    field: str
    detail: str
    kind: ErrorKind = ErrorKind.INVALID
    value: str | int | None = None

    def __str__(self) -> str:
        if self.kind is ErrorKind.REQUIRED:
            return f"{self.field}: Required value: {self.detail}"
        shown = f'"{self.value}"' if isinstance(self.value, str) else str(self.value)
        head = "Invalid value" if self.value is None else f"Invalid value {shown}"
        return f"{self.field}: {head}: {self.detail}"


Errors: TypeAlias = Iterator[FieldError]


def describe(errors: Iterable[FieldError]) -> str:
    """Write faults as one line, for a condition, an event or a log."""
    return "; ".join(map(str, errors))


def required(field: str, detail: str) -> FieldError:
    return FieldError(field, detail, ErrorKind.REQUIRED)


def unread(meta: ObjectMeta) -> Errors:
    """What could not be read of an object is wrong with it."""
    for fault in meta.faults:
        yield FieldError(fault.path, fault.detail)


def shortened(text: str) -> str:
    """Return a user's text, cut where it is too long to be repeated."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def listed(options: Iterable[str]) -> str:
    return f"[{' '.join(options)}]"
