"""Who owns whom: a pure index of all stored objects, kept up to date by the store's changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.registry import Registry
from mcm.sandbox.apiserver.store import Change, ChangeType, Store, Stored
from mcm.sandbox.apiserver.writing.deletion import FOREGROUND_FINALIZER, ORPHAN_FINALIZER


class Standing(Enum):
    """What an owner reference is worth."""

    SOLID = "solid"  # the owner lives, or cannot be judged
    AWAITING = "awaiting"  # the owner is being deleted and waits for its dependents
    ABSENT = "absent"


@final
@dataclass(frozen=True, slots=True)
class Node:
    """One object of the graph, in its current state."""

    uid: str
    storage: str
    stored: Stored

    def blocks(self, owner_uid: str) -> bool:
        return any(
            r.get("uid") == owner_uid and r.get("blockOwnerDeletion") is True
            for r in self.stored.owner_references
        )


@final
class OwnerGraph:
    """Invariant: the dependents of a uid are exactly the known objects that name it as owner,
    whether or not an object of that uid is known."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, set[str]] = {}
        # Owners seen going: absent for sure, even if their kind is no longer served.
        self._gone: set[str] = set()

    def node(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[Node]:
        """Return the objects that name ``uid`` as an owner, oldest first."""
        found = [self._nodes[dependent] for dependent in self._dependents.get(uid, ())]
        return sorted(found, key=lambda node: node.stored.created)

    def load(self, store: Store) -> Iterator[str]:
        """Take in everything stored; yield the uids worth a look."""
        for collection in store.collections():
            for stored in collection:
                self._put(Node(stored.uid, collection.storage, stored), None)
        yield from (uid for uid, node in self._nodes.items() if _concerns(node.stored))

    def observe(self, change: Change) -> Iterable[str]:
        """Take in a change; return the uids of the objects it may concern."""
        stored = change.stored
        if change.type is ChangeType.DELETED:
            self._remove(stored)
            owners = [str(r.get("uid")) for r in stored.owner_references]
            return [*self._dependents.get(stored.uid, ()), *owners]
        self._put(Node(stored.uid, change.storage, stored), change.previous)
        if not _concerns(stored) or _same_for_us(change.previous, stored):
            return ()
        if stored.terminating and FOREGROUND_FINALIZER in stored.finalizers:
            return [stored.uid, *self._dependents.get(stored.uid, ())]
        former = change.previous.owner_references if change.previous is not None else ()
        return [stored.uid, *(str(r.get("uid")) for r in former)]

    def standing(self, node: Node, reference: JSONObject) -> Standing:
        """Tell what one of the node's owner references is worth."""
        if reference.get("uid") in self._gone:
            return Standing.ABSENT
        group, _, _ = str(reference.get("apiVersion", "")).rpartition("/")
        info = self._registry.of_group_kind(group, str(reference.get("kind", "")))
        if info is None:
            return Standing.SOLID
        owner = self._nodes.get(str(reference.get("uid", "")))
        if owner is None or owner.storage != info.storage:
            return Standing.ABSENT
        # A namespaced owner elsewhere does not exist, as far as the reference can say.
        if info.namespaced and owner.stored.namespace != node.stored.namespace:
            return Standing.ABSENT
        if owner.stored.terminating and FOREGROUND_FINALIZER in owner.stored.finalizers:
            return Standing.AWAITING
        return Standing.SOLID

    def _put(self, node: Node, previous: Stored | None) -> None:
        self._nodes[node.uid] = node
        references = node.stored.owner_references
        if previous is not None:
            if references is previous.owner_references or references == previous.owner_references:
                return
            self._unlink(previous)
        for reference in references:
            self._dependents.setdefault(str(reference.get("uid")), set()).add(node.uid)

    def _remove(self, stored: Stored) -> None:
        self._nodes.pop(stored.uid, None)
        if stored.uid in self._dependents:
            self._gone.add(stored.uid)
        self._unlink(stored)

    def _unlink(self, stored: Stored) -> None:
        for reference in stored.owner_references:
            owner = str(reference.get("uid"))
            dependents = self._dependents.get(owner)
            if dependents is not None:
                dependents.discard(stored.uid)
                if not dependents:
                    del self._dependents[owner]
                    self._gone.discard(owner)


def _concerns(stored: Stored) -> bool:
    """Whether the collector may have something to do about an object in this state."""
    if stored.terminating:
        finalizers = stored.finalizers
        return FOREGROUND_FINALIZER in finalizers or ORPHAN_FINALIZER in finalizers
    return bool(stored.owner_references)


def _same_for_us(previous: Stored | None, stored: Stored) -> bool:
    return (
        previous is not None
        and previous.terminating == stored.terminating
        and previous.finalizers == stored.finalizers
        and previous.owner_references == stored.owner_references
    )
