"""Children whose controller is gone, or gives them up: orphans by tomorrow, or deleted with it.

An owner that is deleted with ``--cascade=orphan`` loses its children one by one, and the watches of
owners and of children bring that in any order. Until the reference is off a child nobody may adopt
it, and whoever makes another in its stead has one too many as soon as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.meta import KubeObject, LabelSelector
from mcm.api.selectors import is_empty, matches
from mcm.controllers.owning.ending import ORPHAN_CHILDREN
from mcm.controllers.owning.index import children_of, controllers_of, found_by_uid
from mcm.controllers.owning.ownership import Child, Owner
from mcm.informers.store import Store


def is_orphaning(owner: KubeObject) -> bool:
    """Tell whether ``owner`` is being deleted without what it owns."""
    meta = owner.metadata
    return meta.deletion_timestamp is not None and ORPHAN_CHILDREN in meta.finalizers


def abandoned_for(
    owner_kind: str,
    selector: LabelSelector | None,
    namespace: str,
    *,
    owners: Store[Owner],
    children: Store[Child],
) -> Sequence[Child]:
    """Return the children of ``namespace`` which ``selector`` matches, that nobody has deleted, and
    that still refer to such a controller. Both stores are to be indexed."""
    if selector is None or is_empty(selector):
        return ()
    return tuple(
        child
        for uid in controllers_of(children)
        if _gives_up(owners, uid)
        for child in children_of(children, uid)
        if _awaits(child, owner_kind, selector, namespace)
    )


def _gives_up(owners: Store[Owner], uid: str) -> bool:
    owner = found_by_uid(owners, uid)
    return owner is None or is_orphaning(owner)


def _awaits(child: Child, owner_kind: str, selector: LabelSelector, namespace: str) -> bool:
    meta, controller = child.metadata, child.metadata.controller_ref()
    return (
        meta.namespace == namespace
        and meta.deletion_timestamp is None
        and controller is not None
        and controller.kind == owner_kind
        and matches(selector, meta.labels)
    )
