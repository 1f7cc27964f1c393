"""Handlers that put the keys a change concerns into a queue, old news behind fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcm.api.meta import T
from mcm.informers import Change, Informer
from mcm.workqueue import INITIAL_PRIORITY, WorkQueue


def enqueue_changes(
    queue: WorkQueue[str],
    informer: Informer[T],
    keys_of: Callable[[Change[T]], Iterable[str]],
) -> None:
    """Register the handler that adds what ``keys_of`` says a change concerns.

    What a first list or a resync tells is no news: it waits behind what is, but not for ever.
    """

    def handle(change: Change[T]) -> None:
        enqueue(queue, keys_of(change), initial=change.initial or change.resync)

    informer.add_handler(handle)


def enqueue(queue: WorkQueue[str], keys: Iterable[str], *, initial: bool = False) -> None:
    """Add ``keys``; with ``initial`` behind whatever is added without."""
    priority = INITIAL_PRIORITY if initial else 0
    for key in keys:
        queue.add(key, priority=priority)
