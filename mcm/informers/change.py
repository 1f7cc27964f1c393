"""What a handler is told: one object came, went, or differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias

import msgspec

from mcm.api.meta import T


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One transition of one object, already visible in the store and its indexes.

    ``old`` is None for an addition, ``new`` for a deletion (``old`` is then the last state that was
    told). An object deleted and made anew under its name is told as two changes, never as an update
    between two UIDs. An update that differs in ``metadata.resourceVersion`` alone is not told.
    """

    old: T | None
    new: T | None
    initial: bool = False
    """Part of the first list, or made up for a handler that came late."""
    resync: bool = False
    """Nothing changed: the periodic repetition (``old is new``)."""
    tombstone: bool = False
    """The deletion was inferred (by a relist, or from a successor's UID): ``old`` may lack the last
    writes before it."""
    author: str = ""
    """Who asked for the write that this is the answer to, if it holds nothing else; see
    :mod:`.authorship`. Empty: anybody."""

    @property
    def object(self) -> T:
        """The newer state of the two that exists: what a key is made from."""
        found = self.old if self.new is None else self.new
        if found is None:
            raise AssertionError("a change of nothing")
        return found


Handler: TypeAlias = Callable[[Change[T]], None]
"""Synchronous; never awaits, never calls the API. What it raises is logged and counted."""

Changes: TypeAlias = tuple[Change[T], ...]
