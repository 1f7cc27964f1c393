"""Who belongs to whom: the indexes that follow owner references, and what an owner may claim.

A MachineDeployment claims MachineSets, a MachineSet claims Machines, both by the same rules:
children it controls and selects are kept, those it controls but no longer selects are released,
orphans that it selects are adopted. An owner or a child that is being deleted starts no new bond,
and neither does an empty selector: it would gather every stray object of the namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, final

from mcm.api.codec import to_json_object
from mcm.api.meta import (
    JSONObject,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    Resource,
    T,
)
from mcm.api.selectors import is_empty, matches
from mcm.informers.store import Store

_BY_CONTROLLER = "controller-uid"
_ORPHANS = "orphan-label"
_ANY = ""


def index_by_owner(store: Store[T]) -> None:
    """Make ``children_of`` and ``orphans_for`` work on ``store``; may be called more than once."""
    try:
        store.add_index(_BY_CONTROLLER, _controller_uid)
        store.add_index(_ORPHANS, _orphan_labels)
    except ValueError:
        return  # another controller that shares the store was here first


def children_of(store: Store[T], owner_uid: str) -> Sequence[T]:
    """Return the objects whose controller has that UID."""
    return store.by_index(_BY_CONTROLLER, owner_uid)


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


def _controller_uid(obj: T) -> Iterable[str]:
    ref = obj.metadata.controller_ref()
    return () if ref is None else (ref.uid,)


def _orphan_labels(obj: T) -> Iterable[str]:
    if obj.metadata.controller_ref() is not None:
        return ()
    return (_ANY, *(f"{k}={v}" for k, v in obj.metadata.labels.items()))


@final
@dataclass(frozen=True, slots=True)
class Claims(Generic[T]):
    """What an owner should do about the objects around it."""

    kept: tuple[T, ...]
    adopt: tuple[T, ...] = ()
    release: tuple[T, ...] = ()


def claims_of(
    owner: ObjectMeta,
    selector: LabelSelector | None,
    *,
    children: Iterable[T],
    orphans: Iterable[T],
) -> Claims[T]:
    """Sort ``children`` (as :func:`children_of` returns them) and ``orphans``.

    An owner that is being deleted, or has no selector, keeps all that it controls: the garbage
    collector would take it along in any case.
    """
    if selector is None or owner.deletion_timestamp is not None:
        return Claims(tuple(children))
    kept: list[T] = []
    lost: list[T] = []
    for child in children:
        (kept if matches(selector, child.metadata.labels) else lost).append(child)
    return Claims(
        tuple(kept),
        adopt=tuple(o for o in orphans if _adoptable(o.metadata, selector)),
        release=tuple(lost),
    )


def _adoptable(orphan: ObjectMeta, selector: LabelSelector) -> bool:
    return (
        orphan.deletion_timestamp is None
        and orphan.controller_ref() is None
        and not is_empty(selector)
        and matches(selector, orphan.labels)
    )


def controller_reference(resource: Resource[T], owner: ObjectMeta) -> OwnerReference:
    """Return the reference that makes ``owner``, an object of ``resource``, the controller."""
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


def adoption(child: ObjectMeta, reference: OwnerReference) -> JSONObject:
    """Return the change that gives ``child`` its controller; other owners stay."""
    others = (r for r in child.owner_references if r.uid != reference.uid)
    return _with_references((*others, reference))


def release(child: ObjectMeta, owner_uid: str) -> JSONObject:
    """Return the change that takes the owner from ``child``; other owners stay."""
    return _with_references(r for r in child.owner_references if r.uid != owner_uid)


def _with_references(references: Iterable[OwnerReference]) -> JSONObject:
    return {"metadata": {"ownerReferences": [to_json_object(r) for r in references] or None}}
