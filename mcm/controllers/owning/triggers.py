"""Which owners a change wakes: from changes to keys, by what the stores show and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from mcm.api.meta import ObjectMeta, T
from mcm.api.selectors import is_empty, matches
from mcm.controllers.enqueue import enqueue_changes
from mcm.controllers.owning.index import index_by_owner
from mcm.controllers.owning.ownership import Child, Owner, Ownership
from mcm.controllers.pacing import Pacing
from mcm.informers import Change, Informer, Store
from mcm.workqueue import WorkQueue


def owners_of_child_change(
    ownership: Ownership[Owner, Child], change: Change[Child], owners: Store[Owner]
) -> Iterable[str]:
    """Return the keys of the owners that a child belongs to, belonged to, or could belong to.

    An orphan is offered to whoever selects it when it appears and whenever more than its status
    changes: it may have been illegible before. Changes that owners do not look at wake none.
    """
    old, new = change.old, change.new
    heeded = ownership.heeded
    if change.resync or (old and new and heeded(old) == heeded(new)):
        return ()
    kind = ownership.owner.kind
    keys = dict.fromkeys(_owner_key(kind, old.metadata, owners) if old else ())
    if new is not None:
        keys |= dict.fromkeys(_owner_key(kind, new.metadata, owners))
        if new.metadata.controller_ref() is None and not (old and same_but_for_status(old, new)):
            keys |= dict.fromkeys(selecting(ownership, new.metadata, owners))
    return keys


def keys_of_own_change(change: Change[Owner]) -> Iterable[str]:
    """Return the owner's own key, unless its status is all that changed: only we write that."""
    old, new = change.old, change.new
    if old and new and not change.resync and same_but_for_status(old, new):
        return ()
    return (change.object.metadata.key,)


def same_but_for_status(one: T, other: T) -> bool:
    """Tell whether two states of an object differ at most in status and resource version."""
    fields = (f for f in one.__struct_fields__ if f not in ("metadata", "status"))
    return _versionless(one.metadata) == _versionless(other.metadata) and all(
        getattr(one, name) == getattr(other, name) for name in fields
    )


def wake_owners(
    queue: WorkQueue[str],
    ownership: Ownership[Owner, Child],
    owners: Informer[Owner],
    children: Informer[Child],
    *,
    pacing: Pacing | None = None,
) -> None:
    """Register the handlers that put the keys of owners into ``queue``: their own changes at once,
    those of their children as ``pacing`` says."""
    index_by_owner(children.store)
    enqueue_changes(queue, owners, keys_of_own_change)
    enqueue_changes(
        queue,
        children,
        lambda change: owners_of_child_change(ownership, change, owners.store),
        pacing=pacing,
    )


def _versionless(meta: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(meta, resource_version="")


def _owner_key(kind: str, child: ObjectMeta, owners: Store[Owner]) -> Iterator[str]:
    ref = child.controller_ref()
    if ref is None or ref.kind != kind:
        return
    key = f"{child.namespace}/{ref.name}"
    owner = owners.get(key)
    if owner is not None and owner.metadata.uid == ref.uid:
        yield key


def selecting(
    ownership: Ownership[Owner, Child], orphan: ObjectMeta, owners: Store[Owner]
) -> Iterator[str]:
    """Yield the keys of the owners that select ``orphan``; costs as much as there are owners."""
    for owner in owners.list(orphan.namespace):
        selector = ownership.selector(owner)
        if not is_empty(selector) and matches(selector, orphan.labels):
            yield owner.metadata.key
