"""Why a key is reconciled, for debug lines: the changes, retries and timers that brought it.

A change's name is the same wherever it goes, on every replica: resource, key and version of the
object, as in ``machines/default/m-1@8841``. The first cause names the reconcile, and all its lines.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from typing import final

import msgspec

from mcm import correlation
from mcm.api.meta import T
from mcm.informers import Change
from mcm.workqueue import WorkQueue

log = logging.getLogger(__name__)

_numbers = itertools.count(1)


@final
class Cause(msgspec.Struct, frozen=True):
    """``name`` is what the reconcile is called by; ``why`` says what it did, in a few words."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} ({self.why})"


def told() -> bool:
    """Whether causes are told at all: debug lines alone show them."""
    return log.isEnabledFor(logging.DEBUG)


def note_change(
    queue: WorkQueue[str], keys: Iterable[str], resource: str, change: Change[T]
) -> None:
    """Note, for whoever takes one of ``keys``, that ``change`` of an object brought it."""
    metadata = change.object.metadata
    cause = Cause(f"{resource}/{metadata.key}@{metadata.resource_version}", _kind_of(change))
    for key in keys:
        log.debug("%s %s: woken", queue.name, key, extra={"correlation": cause.name})
        queue.note(key, cause)


def note_retry(queue: WorkQueue[str], key: str, why: str) -> None:
    """Note that the reconcile under way failed and is tried again: it keeps its name."""
    if told():
        queue.note(key, Cause(correlation.current() or _numbered(queue, key), why))


def note_timer(queue: WorkQueue[str], key: str, why: str) -> None:
    """Note that the reconcile under way wanted to look again by itself."""
    if told():
        set_by = correlation.current()
        queue.note(key, Cause(_numbered(queue, key), f"{why}, set by {set_by}" if set_by else why))


def causes_of(queue: WorkQueue[str], key: str) -> tuple[Cause, ...]:
    """Return what was noted for ``key``, which was taken; at least one."""
    noted = tuple(cause for cause in queue.notes(key) if isinstance(cause, Cause))
    return noted or (Cause(_numbered(queue, key), "not by a change"),)


def _numbered(queue: WorkQueue[str], key: str) -> str:
    return f"{queue.name}/{key}#{next(_numbers)}"


def _kind_of(change: Change[T]) -> str:
    if change.resync:
        return "resync"
    if change.initial:
        return "first list"
    if change.new is None:
        return "deleted"
    return "created" if change.old is None else "changed"
