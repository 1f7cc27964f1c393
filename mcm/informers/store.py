"""The mirror of one resource: immutable objects by key, their indexes, and our own writes.

Two currents meet here. The reflector brings what the server says (``put``, ``remove``, ``replace``,
``advance``), in the order of versions. The writer brings the answers to our own requests
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
from mcm.informers.sharing import share_repeated
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
        """Return the objects of ``namespace``, or all: in the last list's order, then by age."""
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
        share_repeated(obj, known)
        return self._set(key, known, obj)

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

    def replace(
        self, items: Iterable[T], version: str, *, unreadable: Mapping[str, str] | None = None
    ) -> Changes[T]:
        """Take a complete list at ``version``; return the difference, deletions first.

        ``unreadable`` names the listed objects that could not be decoded: they exist, so what the
        store knows of them stays (if one has no legible name, absence proves nothing). Own writes
        newer than the list stay too, unless the list is older than what the server told before:
        then its history was reset, and nothing is ahead of it.
        """
        rewound = newer(self._version, version)
        listed = self._listed(tuple(items), version, rewound=rewound)
        ahead = set() if rewound else self._newer_than(version)
        self._unreadable = dict(unreadable or {})
        kept: Collection[str] = self._objects if "" in self._unreadable else self._unreadable
        self._version = version
        changes: list[Change[T]] = []
        stay: dict[str, T] = {}
        for key, known in self._objects.items():
            now = listed.get(key)
            if key in ahead or (_same_version(known, now) if now is not None else key in kept):
                stay[key] = known
            elif now is None:
                changes.append(Change(known, None, tombstone=True))
        for key, obj in listed.items():
            if key not in stay:
                changes.extend(_difference(self._objects.get(key), obj))
        self._refill(listed | stay)
        return tuple(changes)

    def advance(self, version: str) -> None:
        """Note that all news up to ``version`` are in (after each event, at each bookmark)."""
        if version and not newer(self._version, version):
            self._version = version

    def mark_unreadable(self, key: str, reason: str) -> None:
        """Note that the newest state of ``key`` could not be decoded."""
        self._unreadable[key] = reason

    def _listed(self, items: tuple[T, ...], version: str, *, rewound: bool) -> dict[str, T]:
        if rewound:
            self._deleted.clear()
        elif self._deleted:
            self._deleted.relisted({item.metadata.uid for item in items}, version)
        gone = self._deleted
        return {item.metadata.key: item for item in items if item.metadata.uid not in gone}

    def _refill(self, objects: dict[str, T]) -> None:
        """Hold ``objects`` and their keys instead of all before: a key that outlived its object
        would keep the memory around both of them."""
        self._objects.clear()
        self._objects.update(objects)
        in_part = ((key, obj) for key, obj in objects.items() if obj.metadata.faults)
        self._unreadable.update((key, _described(obj)) for key, obj in in_part)
        for index in self._every_index:
            index.refill()

    def _newer_than(self, version: str) -> set[str]:
        objects = self._objects.items()
        return {key for key, obj in objects if newer(obj.metadata.resource_version, version)}

    # ---- both ----------------------------------------------------------------------------------

    def _set(self, key: str, known: T | None, obj: T) -> Changes[T]:
        self._objects[key] = obj
        if obj.metadata.faults:
            self._unreadable[key] = _described(obj)
        elif self._unreadable:
            self._unreadable.pop(key, None)
        for index in self._every_index:
            index.put(key, obj)
        return _difference(known, obj)

    def _drop(self, key: str, known: T) -> Changes[T]:
        del self._objects[key]
        self._unreadable.pop(key, None)
        for index in self._every_index:
            index.discard(key)
        return (Change(known, None),)


def _namespace_of(obj: T) -> tuple[str, ...]:
    return (obj.metadata.namespace,)


def _described(obj: T) -> str:
    return "; ".join(map(str, obj.metadata.faults))


def _same_version(one: T, other: T) -> bool:
    left, right = one.metadata, other.metadata
    return left.resource_version == right.resource_version and left.uid == right.uid


def _difference(known: T | None, obj: T) -> Changes[T]:
    """What is told when ``obj`` takes the place of ``known``."""
    if known is None:
        return (Change(None, obj),)
    if known.metadata.uid != obj.metadata.uid:
        return (Change(known, None, tombstone=True), Change(None, obj))
    return () if same_content(known, obj) else (Change(known, obj),)
