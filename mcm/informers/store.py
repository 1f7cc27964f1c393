"""The mirror of one resource: immutable objects by key, their indexes, and our own writes.

Two currents meet here. The reflector brings what the server says (``put``, ``remove``, ``advance``,
and whole lists), in the order of versions. The writer brings the answers to our own requests
(``observe``, ``observe_deleted``), which run ahead of the watch. The newer version wins, so a late
event never takes an own write back.

An own write that the watch has not confirmed yet is recognised without any bookkeeping: its
version is greater than the store's, since all else in the store came at or before that one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, final

import msgspec

from mcm.api.meta import T
from mcm.informers.change import Change, Changes
from mcm.informers.deletions import RememberedDeletions
from mcm.informers.index import Index, IndexFunction
from mcm.informers.listing import Compared, Listing
from mcm.informers.sharing import share_parts, share_repeated
from mcm.informers.versions import newer, same_content


@final
class Store(Generic[T]):
    """Objects by ``namespace/name`` (``name`` if cluster-scoped). What it returns is never copied.

    Every transition is synchronous and complete when it returns: no reader sees half of one.
    """

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._indexes: dict[str, Index[T]] = {}
        self._namespaces: Index[T] | None = None
        self._every_index: list[Index[T]] = []
        self._version = ""
        self._deleted = RememberedDeletions()
        self._unreadable: dict[str, str] = {}
        self._listener: Callable[[Changes[T]], None] | None = None

    # ---- reading -------------------------------------------------------------------------------

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> Sequence[T]:
        """Return the objects of ``namespace``, or all, in the order in which they came."""
        if namespace is None:
            return tuple(self._objects.values())
        if self._namespaces is None:
            self._namespaces = Index("namespace", _namespace_of, self._objects)
            self._every_index.append(self._namespaces)
        return self._namespaces.find(namespace)

    def keys(self) -> Collection[str]:
        return self._objects.keys()

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Keep objects findable by what ``function`` returns; those already here too.

        Raises ValueError if ``name`` is taken.
        """
        if name in self._indexes:
            raise ValueError(f"index {name!r} exists")
        self._indexes[name] = Index(name, function, self._objects)
        self._every_index.append(self._indexes[name])

    def ensure_index(self, name: str, function: IndexFunction[T]) -> None:
        """The same, unless somebody who shares the store has added the index of that name."""
        if name not in self._indexes:
            self.add_index(name, function)

    def by_index(self, name: str, value: str) -> Sequence[T]:
        """Return the objects that have ``value``. Raises KeyError for an unknown index."""
        return self._indexes[name].find(value)

    def count_by_index(self, name: str, value: str) -> int:
        """Return how many objects have ``value``, however many that are, at one price."""
        return self._indexes[name].count(value)

    def index_values(self, name: str) -> Sequence[str]:
        """Return the values that at least one object has."""
        return self._indexes[name].values()

    @property
    def resource_version(self) -> str:
        """The version up to which the server's news are in; never falls between two lists."""
        return self._version

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Keys whose newest state could not be decoded, or only in part, and why.

        ``get`` returns as much of it as could (``metadata.faults`` says what is missing), else the
        last state that could, or None. Whoever destroys what no object claims must look here first.
        """
        return MappingProxyType(self._unreadable)

    @property
    def index_errors(self) -> int:
        return sum(index.errors for index in self._indexes.values())

    @property
    def remembered_deletions(self) -> int:
        """How many own deletions the server's news have not confirmed yet."""
        return len(self._deleted)

    # ---- own writes ----------------------------------------------------------------------------

    def observe(self, obj: T, *, author: str = "") -> None:
        """Take the answer to an own write, if it is news; the listener hears of it at once.

        ``author``: whose write it is, if it holds nothing else than that.
        """
        self._tell(self.put_own(obj), author)

    def observe_deleted(self, obj: T, *, author: str = "") -> None:
        """Take it that our own delete removed ``obj`` (that UID); older news of it are ignored."""
        self._tell(self.remove_own(obj), author)

    def put_own(self, obj: T) -> Changes[T]:
        """``observe`` without telling the listener."""
        meta = obj.metadata
        if meta.uid in self._deleted:
            return ()
        known = self._objects.get(meta.key)
        # Without a known state, only a version the watch has not reached proves it still exists.
        seen = self._version if known is None else known.metadata.resource_version
        if seen and not newer(meta.resource_version, seen):
            return ()
        if known is not None and known.metadata.uid != meta.uid:
            # That it has a successor proves it gone, before the watch may even tell of it.
            self._deleted.add(known.metadata.uid, known.metadata.resource_version)
        return self._set(meta.key, known, obj)

    def remove_own(self, obj: T) -> Changes[T]:
        """``observe_deleted`` without telling the listener."""
        meta = obj.metadata
        known = self._objects.get(meta.key)
        if known is not None and known.metadata.uid != meta.uid:
            known = None
        version = meta.resource_version if known is None else known.metadata.resource_version
        if known is not None or not self._version or newer(version, self._version):
            self._deleted.add(meta.uid, version)
        return self._drop(meta.key, known) if known is not None else ()

    def subscribe(self, listener: Callable[[Changes[T]], None]) -> None:
        """Name the one who hears of own writes. There is one at most."""
        if self._listener is not None:
            raise RuntimeError("the store has a listener")
        self._listener = listener

    def _tell(self, changes: Changes[T], author: str) -> None:
        if not changes or self._listener is None:
            return
        if author:
            changes = tuple(msgspec.structs.replace(c, author=author) for c in changes)
        self._listener(changes)

    # ---- the server's news ---------------------------------------------------------------------

    def put(self, obj: T) -> Changes[T]:
        """Take an ADDED or MODIFIED event."""
        meta = obj.metadata
        if self._deleted and meta.uid in self._deleted:
            return ()
        key = meta.key
        known = self._objects.get(key)
        # An absent object that is no news was deleted since: its event came a second time.
        seen = self._version if known is None else known.metadata.resource_version
        if seen == meta.resource_version or newer(seen, meta.resource_version):
            return ()
        differs = share_repeated(obj, known)
        return self._set(key, known, obj, differs=differs)

    def remove(self, key: str, *, uid: str, version: str) -> Changes[T]:
        """Take a DELETED event: the object ``uid`` at ``key`` ended at ``version``."""
        self._deleted.discard(uid)
        known = self._objects.get(key)
        if known is None:
            self._unreadable.pop(key, None)
            return ()
        if known.metadata.uid != uid and newer(known.metadata.resource_version, version):
            return ()  # its successor, which our own write brought in first
        return self._drop(key, known)

    def advance(self, version: str) -> None:
        """Note that all news up to ``version`` are in (after each event, at each bookmark)."""
        if version and not newer(self._version, version):
            self._version = version

    def mark_unreadable(self, key: str, reason: str) -> None:
        """Note that the newest state of ``key`` could not be decoded."""
        self._unreadable[key] = reason

    # ---- lists ---------------------------------------------------------------------------------

    def replace(
        self, items: Iterable[T], version: str, *, unreadable: Mapping[str, str] | None = None
    ) -> Changes[T]:
        """Take a complete list at ``version`` in one step; return the difference."""
        listing = self.begin_list()
        told = [change for item in items for change in self.take_listed(listing, item)]
        for key, reason in (unreadable or {}).items():
            listing.mark_unreadable(key, reason)
        return (*told, *self.finish_list(listing, version))

    def begin_list(self) -> Listing[T]:
        return Listing(at_once=not self._version and not self._objects)

    def take_listed(self, listing: Listing[T], obj: T) -> Changes[T]:
        """Take an object of a list that is under way; return what is to be told at once.

        The first list fills the store as it comes: nobody goes by a mirror that was never whole.
        Any later one is held back until it is complete, as half of it would show a world that
        never was. Of what it brings only that is kept which the store does not have already.
        """
        key = obj.metadata.key
        known = self._objects.get(key)
        if known is None:
            listing.show(key, obj)
            hidden = not listing.at_once or obj.metadata.uid in self._deleted
            return () if hidden else self._set(key, None, obj)
        if _same_version(known, obj):
            listing.show(key, known)
            return ()
        share_parts(obj, known)
        listing.show(key, obj)
        if known.metadata.uid == obj.metadata.uid and self._stays(key, obj):
            listing.compared[key] = Compared(known, not same_content(known, obj))
        return ()

    def _stays(self, key: str, obj: T) -> bool:
        """Tell whether every index has ``key`` where ``obj`` belongs."""
        return not obj.metadata.faults and all(index.has(key, obj) for index in self._every_index)

    def finish_list(self, listing: Listing[T], version: str) -> Changes[T]:
        """Take it that a list at ``version`` is complete; return the difference that was not told
        yet, deletions first.

        Objects of which a newer state could not be decoded stay as they are known (if one has no
        legible name, absence proves nothing). Own writes newer than the list stay too, unless the
        list is older than what the server told before: then its history was reset, and nothing is
        ahead of it.
        """
        rewound = newer(self._version, version)
        listed = self._believed(listing, version, rewound=rewound)
        self._version = version
        kept: Collection[str] = self._objects if "" in listing.unreadable else listing.unreadable
        gone: list[str] = []
        news: list[str] = [key for key in listed if key not in self._objects]
        for key, known in self._objects.items():
            now = listed.get(key)
            if now is known or (not rewound and newer(known.metadata.resource_version, version)):
                continue
            if now is None:
                if key not in kept:
                    gone.append(key)
            elif not _same_version(known, now):
                news.append(key)
        self._forget_unreadable()
        changes = [Change(self._dropped(key), None, tombstone=True) for key in gone]
        for key in news:
            before, obj = self._objects.get(key), listed[key]
            compared = listing.compared.get(key)
            if compared is None or compared.known is not before or self._unreadable:
                changes.extend(self._set(key, before, obj))
                continue
            self._objects[key] = obj
            if compared.differs:
                changes.append(Change(before, obj))
        self._unreadable.update(listing.unreadable)
        return tuple(changes)

    def _believed(self, listing: Listing[T], version: str, *, rewound: bool) -> Mapping[str, T]:
        """Return what is listed and not known to be gone."""
        if rewound:
            self._deleted.clear()
        if not self._deleted:
            return listing.objects
        self._deleted.relisted({obj.metadata.uid for obj in listing.objects.values()}, version)
        shown, gone = listing.objects.items(), self._deleted
        return {key: obj for key, obj in shown if obj.metadata.uid not in gone}

    def _forget_unreadable(self) -> None:
        """Forget all that is not said by the objects themselves: a whole list says it anew."""
        for key in tuple(self._unreadable):
            known = self._objects.get(key)
            if known is None or not known.metadata.faults:
                del self._unreadable[key]

    # ---- both ----------------------------------------------------------------------------------

    def _set(self, key: str, known: T | None, obj: T, *, differs: bool = False) -> Changes[T]:
        self._objects[key] = obj
        if obj.metadata.faults:
            self._unreadable[key] = _described(obj)
        elif self._unreadable:
            self._unreadable.pop(key, None)
        for index in self._every_index:
            index.put(key, obj)
        return _difference(known, obj, differs=differs)

    def _drop(self, key: str, known: T) -> Changes[T]:
        self._dropped(key)
        return (Change(known, None),)

    def _dropped(self, key: str) -> T:
        self._unreadable.pop(key, None)
        for index in self._every_index:
            index.discard(key)
        return self._objects.pop(key)


def _namespace_of(obj: T) -> tuple[str, ...]:
    return (obj.metadata.namespace,)


def _described(obj: T) -> str:
    return "; ".join(map(str, obj.metadata.faults))


def _same_version(one: T, other: T) -> bool:
    left, right = one.metadata, other.metadata
    return left.resource_version == right.resource_version and left.uid == right.uid


def _difference(known: T | None, obj: T, *, differs: bool) -> Changes[T]:
    """What is told when ``obj`` takes the place of ``known``. Unless it is known already that they
    ``differ``, they are compared."""
    if known is None:
        return (Change(None, obj),)
    if known.metadata.uid != obj.metadata.uid:
        return (Change(known, None, tombstone=True), Change(None, obj))
    return (Change(known, obj),) if differs or not same_content(known, obj) else ()
