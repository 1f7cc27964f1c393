"""A list on its way into a store: what it has shown so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, final

import msgspec

from mcm.api.meta import T


class Compared(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """A listed object may simply take the place of ``known``, as long as that is still there: no
    index has to move it, and whether it ``differs`` in content is found out already."""

    known: T
    differs: bool


@final
class Listing(Generic[T]):
    """``objects`` by key, in the state a store will have if nothing newer comes in between.

    ``at_once``: it is a mirror's first list, which fills the store as it comes.
    """

    __slots__ = ("_unreadable", "at_once", "compared", "objects")

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once
        self.objects: dict[str, T] = {}
        self.compared: dict[str, Compared[T]] = {}
        self._unreadable: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.objects.keys() | self._unreadable.keys())

    @property
    def unreadable(self) -> Mapping[str, str]:
        """The listed objects whose newest state could not be decoded, and why."""
        return self._unreadable

    def show(self, key: str, obj: T) -> None:
        self._unreadable.pop(key, None)
        self.objects[key] = obj

    def forget(self, key: str) -> None:
        """Take it that the object at ``key`` ended while the list was under way."""
        self._unreadable.pop(key, None)
        self.objects.pop(key, None)

    def mark_unreadable(self, key: str, reason: str) -> None:
        """Note that ``key`` exists in a state that cannot be decoded; empty: who knows which."""
        self._unreadable[key] = reason
