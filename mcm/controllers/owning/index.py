"""The indexes that find an owner's children, and the orphans it could adopt, without a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from mcm.api.meta import LabelSelector, T
from mcm.api.selectors import is_empty, matches
from mcm.informers.store import Store

_BY_CONTROLLER = "controller-uid"
_BY_UID = "uid"
_ORPHANS = "orphan-label"
_ANY = ""


def index_by_owner(store: Store[T]) -> None:
    """Make ``children_of`` and ``orphans_for`` work on ``store``; may be called more than once."""
    store.ensure_index(_BY_CONTROLLER, _controller_uid)
    store.ensure_index(_ORPHANS, _orphan_labels)


def children_of(store: Store[T], owner_uid: str) -> Sequence[T]:
    """Return the objects whose controller has that UID."""
    return store.by_index(_BY_CONTROLLER, owner_uid)


def count_children(store: Store[T], owner_uid: str) -> int:
    """Return how many ``children_of`` returns, without looking at them."""
    return store.count_by_index(_BY_CONTROLLER, owner_uid)


def orphans_for(store: Store[T], selector: LabelSelector | None, namespace: str) -> Sequence[T]:
    """Return the objects of ``namespace`` without a controller which ``selector`` matches.

    A selector that is absent or empty finds none.
    """
    if selector is None or is_empty(selector):
        return ()
    one_label = next((f"{k}={v}" for k, v in selector.match_labels.items()), _ANY)
    return tuple(
        orphan
        for orphan in store.by_index(_ORPHANS, one_label)
        if orphan.metadata.namespace == namespace and matches(selector, orphan.metadata.labels)
    )


def index_by_uid(store: Store[T]) -> None:
    """Make ``found_by_uid`` work on ``store``; may be called more than once."""
    with suppress(ValueError):  # another controller that shares the store was here first
        store.add_index(_BY_UID, lambda obj: (obj.metadata.uid,))


def found_by_uid(store: Store[T], uid: str) -> T | None:
    return next(iter(store.by_index(_BY_UID, uid)), None)


def controllers_of(store: Store[T]) -> Sequence[str]:
    """Return the UIDs of all controllers that an object of ``store`` has."""
    return store.index_values(_BY_CONTROLLER)


def _controller_uid(obj: T) -> Iterable[str]:
    ref = obj.metadata.controller_ref()
    return () if ref is None else (ref.uid,)


def _orphan_labels(obj: T) -> Iterable[str]:
    if obj.metadata.controller_ref() is not None:
        return ()
    return (_ANY, *(f"{k}={v}" for k, v in obj.metadata.labels.items()))
