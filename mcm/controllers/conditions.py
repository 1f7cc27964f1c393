"""Finds and removes a condition of whatever object; others' conditions are left alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Condition(Protocol):
    """What the conditions of all kinds have in common."""

    @property
    def type(self) -> str: ...

    @property
    def reason(self) -> str: ...


C = TypeVar("C", bound=Condition)


def find(conditions: Iterable[C], kind: str) -> C | None:
    for condition in conditions:
        if condition.type == kind:
            return condition
    return None


def reason_of(conditions: Iterable[Condition], kind: str) -> str:
    """Return the reason of the condition ``kind``; empty if there is none."""
    found = find(conditions, kind)
    return found.reason if found else ""


def without(conditions: Iterable[C], kind: str) -> tuple[C, ...]:
    return tuple(c for c in conditions if c.type != kind)
