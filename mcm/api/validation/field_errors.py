"""One finding about an object: the field, what stood there, and what belongs there.

An error is what cannot be acted on: the object is refused, whoever asks. A warning is acted on all
the same, perhaps not as its author meant it.
"""

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
    """One finding. ``field`` is the JSON path from the object's root, ``value`` what stood there,
    shortened if it is long."""

    field: str
    detail: str
    kind: ErrorKind = ErrorKind.INVALID
    value: str | int | None = None
    is_warning: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.complaint}"

    @property
    def complaint(self) -> str:
        """What is wrong, for whoever names the field otherwise."""
        if self.kind is ErrorKind.REQUIRED:
            return f"Required value: {self.detail}"
        shown = f'"{self.value}"' if isinstance(self.value, str) else str(self.value)
        if self.is_warning:
            return self.detail if self.value is None else f"{shown}: {self.detail}"
        head = "Invalid value" if self.value is None else f"Invalid value {shown}"
        return f"{head}: {self.detail}"


Findings: TypeAlias = Iterator[FieldError]


def describe(errors: Iterable[FieldError]) -> str:
    """Write findings as one line, for a condition, an event or a log."""
    return "; ".join(map(str, errors))


def errors_among(findings: Iterable[FieldError]) -> tuple[FieldError, ...]:
    return tuple(found for found in findings if not found.is_warning)


def required(field: str, detail: str) -> FieldError:
    return FieldError(field, detail, ErrorKind.REQUIRED)


def warning(field: str, detail: str, *, value: str | int | None = None) -> FieldError:
    shown = shortened(value) if isinstance(value, str) else value
    return FieldError(field, detail, value=shown, is_warning=True)


def unread(meta: ObjectMeta) -> Findings:
    """What could not be read of an object is wrong with it."""
    for fault in meta.faults:
        yield FieldError(fault.path, fault.detail)


def shortened(text: str) -> str:
    """Return a user's text, cut where it is too long to be repeated."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def listed(options: Iterable[str]) -> str:
    return f"[{' '.join(options)}]"
