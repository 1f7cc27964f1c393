"""Handlers that put the keys a change concerns into a queue, old news behind fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mcm.api.meta import T
from mcm.controllers import causes
from mcm.controllers.pacing import Pacing
from mcm.controllers.write_guard import author_of
from mcm.informers import Change, Informer
from mcm.workqueue import INITIAL_PRIORITY, WorkQueue


def enqueue_changes(
    queue: WorkQueue[str],
    informer: Informer[T],
    keys_of: Callable[[Change[T]], Iterable[str]],
    *,
    skip_own: bool = False,
    pacing: Pacing | None = None,
) -> None:
    """Register the handler that adds what ``keys_of`` says a change concerns.

    What a first list or a resync tells is no news: it waits behind what is, but not for ever.
    With ``skip_own`` a reconcile's own writes do not bring its key back. That is for controllers
    (named as the queue is) whose reconcile itself does all that its writes make due, or returns an
    Outcome. What holds more than the write is news to its writer too. With ``pacing`` a key waits
    as long as that says.
    """

    def handle(change: Change[T]) -> None:
        keys = keys_of(change)
        if skip_own:
            keys = others_news(queue.name, change, keys)
        if causes.told():
            keys = tuple(keys)
            causes.note_change(queue, keys, informer.resource.plural, change)
        enqueue(queue, keys, initial=change.initial or change.resync, pacing=pacing)

    informer.add_handler(handle)


def others_news(controller: str, change: Change[T], keys: Iterable[str]) -> Iterator[str]:
    """Yield the keys to which ``change`` is news: all but the one whose own reconcile wrote it."""
    for key in keys:
        if not change.author or change.author != author_of(controller, key):
            yield key


def enqueue(
    queue: WorkQueue[str],
    keys: Iterable[str],
    *,
    initial: bool = False,
    pacing: Pacing | None = None,
) -> None:
    """Add ``keys``, when ``pacing`` says; with ``initial`` behind whatever is added without."""
    priority = INITIAL_PRIORITY if initial else 0
    for key in keys:
        if pacing is not None and (wait := pacing.wait(key)):
            queue.add_after(key, wait, priority=priority)
        else:
            queue.add(key, priority=priority)
