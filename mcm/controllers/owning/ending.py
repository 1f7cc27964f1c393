"""What is left to do for an owner that is being deleted."""

from __future__ import annotations

from collections.abc import Sized
from enum import Enum, auto
from typing import Final

from mcm.api.meta import ObjectMeta

ORPHAN_CHILDREN: Final = "orphan"
"""The garbage collector's finalizer: whoever deleted the owner asked to keep what it owns."""


class Ending(Enum):
    """The next step of an owner on its way out."""

    OVER = auto()
    """Our finalizer is gone: what remains is others'."""
    LET_GO = auto()
    """Nothing is left to be deleted: take the finalizer off."""
    DELETE_CHILDREN = auto()
    """The owner goes after its children."""


def ending_of(owner: ObjectMeta, finalizer: str, children: Sized) -> Ending:
    """Decide about an ``owner`` with a deletion timestamp that controls ``children``."""
    if finalizer not in owner.finalizers:
        return Ending.OVER
    if not children or ORPHAN_CHILDREN in owner.finalizers:
        return Ending.LET_GO
    return Ending.DELETE_CHILDREN
