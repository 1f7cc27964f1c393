"""Which objects an owner keeps, adopts and releases, and the changes that do so.

Children it controls and selects are kept, those it controls but no longer selects are released,
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
    KubeObject,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    Resource,
    T,
    is_controlled_by,
)
from mcm.api.selectors import is_empty, matcher, matches


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
    """Sort ``children`` and ``orphans``; objects with another controller are nobody's here.

    An owner that is being deleted, or has no selector, keeps all that it controls: the garbage
    collector would take it along in any case.
    """
    mine = tuple(c for c in children if is_controlled_by(c.metadata, owner.uid))
    kept = kept_of(owner, selector, mine)
    if selector is None or owner.deletion_timestamp is not None:
        return Claims(kept)
    fits = matcher(selector)
    return Claims(
        kept,
        adopt=tuple(o for o in orphans if _adoptable(o.metadata, selector)),
        release=tuple(c for c in mine if not fits(c.metadata.labels)),
    )


def kept_of(
    owner: ObjectMeta, selector: LabelSelector | None, controlled: Sequence[T]
) -> tuple[T, ...]:
    """Return those of the children it controls that ``owner`` keeps."""
    if selector is None or owner.deletion_timestamp is not None:
        return tuple(controlled)
    fits = matcher(selector)
    return tuple([c for c in controlled if fits(c.metadata.labels)])


def _adoptable(orphan: ObjectMeta, selector: LabelSelector) -> bool:
    return (
        orphan.deletion_timestamp is None
        and orphan.controller_ref() is None
        and not is_empty(selector)
        and matches(selector, orphan.labels)
    )


def same_bonds(one: ObjectMeta, other: ObjectMeta) -> bool:
    """Tell whether two states of an object are claimed alike: nothing that counts differs."""
    return (
        one.uid == other.uid
        and one.labels == other.labels
        and one.owner_references == other.owner_references
        and one.deletion_timestamp == other.deletion_timestamp
    )


def controller_reference(resource: Resource[KubeObject], owner: ObjectMeta) -> OwnerReference:
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
