"""The description of one kind that controls another: all that the engine knows of the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, final

import msgspec

from mcm.api.meta import KubeObject, LabelSelector, Resource


class ReportingObject(KubeObject, Protocol):
    """An object whose controller writes its status."""

    @property
    def status(self) -> msgspec.Struct: ...


Owner = TypeVar("Owner", bound=ReportingObject)
Child = TypeVar("Child", bound=KubeObject)


@final
@dataclass(frozen=True, kw_only=True)
class Ownership(Generic[Owner, Child]):
    """``owner`` objects control ``child`` objects of their namespace.

    ``selector`` reads an owner's selector. ``heeded`` returns what owners look at in a child: a
    change that leaves it equal wakes nobody; by default all counts. ``noun`` is what a child is
    called in events.
    """

    owner: Resource[Owner]
    child: Resource[Child]
    selector: Callable[[Owner], LabelSelector | None]
    noun: str
    heeded: Callable[[Child], object] = lambda child: child
