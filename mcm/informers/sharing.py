"""Letting equal parts of many objects be one value: most of a fleet says the same things."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter, is_
from typing import cast

import msgspec
from msgspec.structs import force_setattr

from mcm.api.codec import holds_payload
from mcm.api.core import Node, Pod
from mcm.api.interning import share_condition_texts, share_parts_of_pod
from mcm.api.machine import Machine
from mcm.api.meta import T

_WITH_CONDITIONS = (Machine, Node)


def share_repeated(obj: T, known: T | None) -> bool:
    """Replace parts of a freshly decoded object by equal ones seen before; it stays equal.

    ``known`` is the state it succeeds; whether the two were found to differ is told, as that need
    not be looked for again. What comes out of :mod:`mcm.api.codec` needs this no more; what a
    watch's own decoder makes does.
    """
    if isinstance(obj, Pod):
        share_parts_of_pod(obj)
    if not isinstance(obj, _WITH_CONDITIONS):
        return False
    conditions = obj.status.conditions
    if isinstance(known, _WITH_CONDITIONS) and conditions == known.status.conditions:
        force_setattr(obj.status, "conditions", known.status.conditions)
        return False
    share_condition_texts(conditions)
    return known is not None


def share_parts(obj: T, known: T) -> None:
    """Let a freshly decoded object hold the parts of ``known`` that equal its own; it stays equal.

    A list that brings another state of everything then takes no second fleet's memory: mostly all
    but the status and the version is as it was.
    """
    if type(obj) is type(known):
        _share(cast("msgspec.Struct", obj), cast("msgspec.Struct", known))


def _share(obj: msgspec.Struct, known: msgspec.Struct) -> bool:
    """Do so; tell whether all parts are shared now."""
    names, parts_of = _fields(type(obj))
    alike = True
    for name, mine, theirs in zip(names, parts_of(obj), parts_of(known), strict=True):
        if mine is not theirs:
            shared = _shared(mine, theirs)
            if shared is not mine:
                force_setattr(obj, name, shared)
            alike = alike and shared is theirs
    return alike


@cache
def _fields(
    kind: type[msgspec.Struct],
) -> tuple[Sequence[str], Callable[[object], Iterable[object]]]:
    """Return the names of a type's fields, and what takes all of them out of an object."""
    names: tuple[str, ...] = kind.__struct_fields__
    return names, attrgetter(*names) if len(names) > 1 else lambda obj: (getattr(obj, names[0]),)


def _shared(mine: object, theirs: object) -> object:
    """Return what equals ``mine`` and is, as far as it can be, part of ``theirs``."""
    if type(mine) is str:  # most parts are
        return theirs if mine == theirs else mine
    if type(mine) is not type(theirs):
        return mine
    if isinstance(mine, msgspec.Struct):
        # JSON of whatever form may be equal and not the same: 1 and true.
        if mine == theirs and not holds_payload(type(mine)):
            return theirs
        return theirs if _share(mine, cast("msgspec.Struct", theirs)) else mine
    if isinstance(mine, tuple):
        return _shared_items(mine, cast("tuple[object, ...]", theirs))
    if mine != theirs:
        return mine
    loose = isinstance(mine, dict) and not all(type(value) is str for value in mine.values())
    return mine if loose else theirs


def _shared_items(mine: tuple[object, ...], theirs: tuple[object, ...]) -> tuple[object, ...]:
    if len(mine) != len(theirs):
        return mine
    items = tuple(map(_shared, mine, theirs))
    return theirs if all(map(is_, items, theirs)) else items
