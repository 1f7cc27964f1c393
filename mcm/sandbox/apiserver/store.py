"""A versioned object store, synchronous and without I/O: what a database is to an API server.

One revision counts the writes of all collections. Each collection keeps its current objects and a
bounded log of changes, from which watches start and past states are rebuilt. An object is parsed
and encoded once; every reader and watcher shares both forms, so they must never be changed.

Subscribers hear of changes in revision order, each change once, before the write returns. A
subscriber may itself write: those changes are delivered after the one under way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.stored import Stored

__all__ = [
    "DEFAULT_WINDOW",
    "Change",
    "ChangeType",
    "Collection",
    "Compacted",
    "Store",
    "Stored",
    "Subscriber",
    "Unsubscribe",
]

DEFAULT_WINDOW = 4096
"""Changes kept a collection. Upstream's watch cache holds between 100 and 102400."""

_SNAPSHOTS = 16


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Compacted(Exception):
    """The revision asked for is older than what is kept."""

    def __init__(self, revision: int, oldest: int) -> None:
        self.revision = revision
        self.oldest = oldest
        super().__init__(f"revision {revision} is compacted, the oldest kept is {oldest}")


@final
class Change:
    """One committed write. ``stored`` is the new state; for a deletion the last one, under the
    deletion's revision. ``previous`` is None for a creation. ``lines`` caches encoded events."""

    __slots__ = ("_departed", "lines", "previous", "revision", "storage", "stored", "type")

    def __init__(
        self, kind: ChangeType, storage: str, stored: Stored, previous: Stored | None
    ) -> None:
        self.type = kind
        self.storage = storage
        self.stored = stored
        self.previous = previous
        self.revision = stored.revision
        self.lines: dict[str, bytes] = {}
        self._departed: Stored | None = None

    @property
    def departed(self) -> Stored:
        """The last state of an object that is gone, or gone from somebody's selection: the one
        before this change, under this revision. There must be one before (not a creation)."""
        if self.type is ChangeType.DELETED:
            return self.stored
        if self._departed is None:
            assert self.previous is not None
            self._departed = self.previous.restamped(self.revision)
        return self._departed

    def __repr__(self) -> str:
        return f"Change({self.type}, {self.storage}, {self.stored!r})"


Subscriber = Callable[[Change], None]
Unsubscribe = Callable[[], None]


@final
class Collection:
    """All objects of one kind. ``floor`` is the oldest revision a watch may start from."""

    def __init__(self, storage: str, *, window: int) -> None:
        self.storage = storage
        self.objects: dict[str, Stored] = {}
        self.floor = 0
        self.log: deque[Change] = deque()
        self._window = window
        self._keys: list[str] | None = []
        self._snapshots: OrderedDict[int, tuple[Stored, ...]] = OrderedDict()
        self.subscribers: tuple[Subscriber, ...] = ()

    def __len__(self) -> int:
        return len(self.objects)

    def __iter__(self) -> Iterator[Stored]:
        return iter(tuple(self.objects.values()))

    def get(self, key: str) -> Stored | None:
        return self.objects.get(key)

    def ordered(self, namespace: str | None = None) -> list[Stored]:
        """Return the current objects by key; with ``namespace``, only those in it."""
        if self._keys is None:
            self._keys = sorted(self.objects)
        keys = self._keys if namespace is None else _within(self._keys, namespace)
        objects = self.objects
        return [objects[key] for key in keys]

    def at(self, revision: int) -> tuple[Stored, ...]:
        """Return the objects as they were at a past revision, by key. Raises Compacted."""
        kept = self._snapshots.get(revision)
        if kept is not None:
            return kept
        if revision < self.floor:
            raise Compacted(revision, self.floor)
        if not self.log or self.log[-1].revision <= revision:
            return tuple(self.ordered())
        return self._rewound(revision)

    def keep(self, revision: int, snapshot: tuple[Stored, ...]) -> None:
        """Hold a state for the later pages of a list, beyond the log's window if need be."""
        self._snapshots[revision] = snapshot
        self._snapshots.move_to_end(revision)
        if len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)

    def since(self, revision: int) -> list[Change]:
        """Return the changes after ``revision``, oldest first. Raises Compacted."""
        if revision < self.floor:
            raise Compacted(revision, self.floor)
        found: list[Change] = []
        for change in reversed(self.log):
            if change.revision <= revision:
                break
            found.append(change)
        found.reverse()
        return found

    def compact(self, revision: int) -> None:
        """Forget the log and the held snapshots: older revisions are gone."""
        self.floor = revision
        self.log.clear()
        self._snapshots.clear()

    def set_window(self, window: int) -> None:
        self._window = window
        self._trim()

    def restore(self, objects: Iterable[Stored]) -> int:
        """Take in objects without a change. Only the store may call this. Returns the latest
        revision that is here; no watch can start from an earlier one."""
        for stored in objects:
            self.objects[stored.key] = stored
            self.floor = max(self.floor, stored.revision)
        self._keys = None
        self._snapshots.clear()
        return self.floor

    def apply(self, change: Change) -> None:
        """Make a change current. Only the store may call this."""
        key = change.stored.key
        if change.type is ChangeType.DELETED:
            del self.objects[key]
            self._keys = None
        else:
            if change.previous is None:
                self._keys = None
            self.objects[key] = change.stored
        self.log.append(change)
        self._trim()

    def _trim(self) -> None:
        while len(self.log) > self._window:
            self.floor = self.log.popleft().revision

    def _rewound(self, revision: int) -> tuple[Stored, ...]:
        objects = dict(self.objects)
        for change in reversed(self.log):
            if change.revision <= revision:
                break
            if change.previous is None:
                objects.pop(change.stored.key, None)
            else:
                objects[change.stored.key] = change.previous
        return tuple(objects[key] for key in sorted(objects))


@final
class Store:
    """The collections and the revision they share. Revisions start at 1, as in a fresh etcd."""

    def __init__(self, *, window: int = DEFAULT_WINDOW) -> None:
        self._window = window
        self._revision = 1
        self._collections: dict[str, Collection] = {}
        self._subscribers: tuple[Subscriber, ...] = ()
        self._undelivered: deque[Change] = deque()
        self._delivering = False

    @property
    def revision(self) -> int:
        """The revision of the last write of all."""
        return self._revision

    def collection(self, storage: str) -> Collection:
        """Return a collection by its key (:attr:`ResourceInfo.storage`), empty at first."""
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(storage, window=self._window)
        return found

    def collections(self) -> tuple[Collection, ...]:
        return tuple(self._collections.values())

    def create(self, storage: str, namespace: str, name: str, body: JSONObject) -> Stored:
        """Commit a new object. ``body`` and its metadata become the store's; the key must be
        free (KeyError)."""
        collection = self.collection(storage)
        revision = self._revision + 1
        stored = Stored(namespace, name, body, revision=revision, created=revision)
        if stored.key in collection.objects:
            raise KeyError(stored.key)
        self._commit(collection, Change(ChangeType.ADDED, storage, stored, None))
        return stored

    def replace(self, storage: str, live: Stored, body: JSONObject) -> Stored:
        """Commit a new state of ``live``, which must be current (KeyError). ``body`` and its
        metadata become the store's."""
        collection = self._collection_of(storage, live)
        stored = Stored(
            live.namespace, live.name, body, revision=self._revision + 1, created=live.created
        )
        self._commit(collection, Change(ChangeType.MODIFIED, storage, stored, live))
        return stored

    def delete(self, storage: str, live: Stored) -> Stored:
        """Commit the removal of ``live``, which must be current (KeyError). Watchers get the
        state it had, whatever the request that removed it changed first, as upstream."""
        collection = self._collection_of(storage, live)
        stored = live.restamped(self._revision + 1)
        self._commit(collection, Change(ChangeType.DELETED, storage, stored, live))
        return stored

    def restore(self, storage: str, objects: Iterable[Stored]) -> None:
        """Take in objects as they were kept elsewhere, before anybody has read the collection:
        nobody hears of them, and no watch can start before them. Their revisions must be new."""
        self._revision = max(self._revision, self.collection(storage).restore(objects))

    def subscribe(self, subscriber: Subscriber, storage: str | None = None) -> Unsubscribe:
        """Call ``subscriber`` with each later change, of one collection or of all. It must not
        raise. The returned function ends that; it may be called twice."""
        if storage is None:
            self._subscribers = (*self._subscribers, subscriber)
        else:
            collection = self.collection(storage)
            collection.subscribers = (*collection.subscribers, subscriber)

        def unsubscribe() -> None:
            if storage is None:
                self._subscribers = _without(self._subscribers, subscriber)
            else:
                collection = self.collection(storage)
                collection.subscribers = _without(collection.subscribers, subscriber)

        return unsubscribe

    def compact(self, storage: str | None = None) -> None:
        """Forget all history of one collection or of all: older watches and tokens expire."""
        for collection in (
            self._collections.values() if storage is None else (self.collection(storage),)
        ):
            collection.compact(self._revision)

    def set_window(self, window: int) -> None:
        """Keep at most ``window`` changes a collection from now on."""
        self._window = window
        for collection in self._collections.values():
            collection.set_window(window)

    def _collection_of(self, storage: str, live: Stored) -> Collection:
        collection = self.collection(storage)
        if collection.objects.get(live.key) is not live:
            raise KeyError(live.key)
        return collection

    def _commit(self, collection: Collection, change: Change) -> None:
        self._revision = change.revision
        collection.apply(change)
        self._undelivered.append(change)
        if not self._delivering:
            self._deliver()

    def _deliver(self) -> None:
        self._delivering = True
        try:
            while self._undelivered:
                change = self._undelivered.popleft()
                for subscriber in self._collections[change.storage].subscribers:
                    subscriber(change)
                for subscriber in self._subscribers:
                    subscriber(change)
        finally:
            self._delivering = False


def _within(keys: list[str], namespace: str) -> list[str]:
    # "0" is the character after "/": keys of the namespace lie between the two.
    return keys[bisect_left(keys, f"{namespace}/") : bisect_left(keys, f"{namespace}0")]


def _without(subscribers: tuple[Subscriber, ...], gone: Subscriber) -> tuple[Subscriber, ...]:
    return tuple(s for s in subscribers if s is not gone)
