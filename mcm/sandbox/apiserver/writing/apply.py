"""Server-side apply, and the field ownership that it and every other write keep.

Both functions are pure: they take what is stored and what somebody wants, and return the object to
store with its ``metadata.managedFields``. A caller that does not care for ownership leaves
:func:`track_update` out; then only fields set by appliers have owners.
"""

from __future__ import annotations

from typing import final

import orjson

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.merging import Removal, merge, surrendered
from mcm.sandbox.apiserver.fields.ownership import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    Owner,
    Owners,
    all_fields,
    capped,
    owners_of,
    with_entry,
    with_owners,
    without_fields,
)
from mcm.sandbox.apiserver.fields.sets import (
    EMPTY,
    FieldError,
    FieldSet,
    Path,
    compare,
    display,
    paths_of,
)
from mcm.sandbox.apiserver.fields.types import FieldType, type_of_object

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

__all__ = ["ApplyConflict", "FieldError", "server_side_apply", "track_update"]


@final
class ApplyConflict(Exception):
    """Others own fields that an apply wants to change; the text is a server's.

    ``conflicts`` holds (manager, field path) pairs; ``causes`` the same as (message, field path),
    for the Status, whose causes have the reason ``FieldManagerConflict``.
    """

    def __init__(self, conflicts: list[tuple[Owner, Path]]) -> None:
        found = sorted(conflicts, key=lambda c: (str(c[0]), _leaves_first(c[1])))
        self.conflicts = [(owner.manager, display(path)) for owner, path in found]
        self.causes = [(f"conflict with {owner}", display(path)) for owner, path in found]
        super().__init__(_conflict_message([(str(o), display(p)) for o, p in found]))


def _leaves_first(path: Path) -> list[tuple[bool, str]]:
    """A sort key by which members of an object come before members of its members."""
    return [(depth < len(path), element) for depth, element in enumerate(path, start=1)]


def _conflict_message(found: list[tuple[str, str]]) -> str:
    if len(found) == 1:
        return f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    lines: list[str] = []
    for owner in dict.fromkeys(owner for owner, _ in found):
        lines.append(f"conflicts with {owner}:")
        lines += [f"- {path}" for who, path in found if who == owner]
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def server_side_apply(
    live: JSONObject | None,
    applied: JSONObject,
    *,
    manager: str,
    force: bool,
    now: str,
    subresource: str = "",
    schema: JSONObject | None,
) -> JSONObject:
    """Lay ``applied`` over ``live`` (None: it does not exist) on behalf of ``manager``.

    Fields the manager applied before, does not apply now, and nobody else owns, are removed.
    ``now`` is the RFC 3339 time for its entry; ``schema`` is a custom resource's structural schema,
    None for built-in kinds. Returns ``live`` itself if nothing changes at all.

    Raises:
        ApplyConflict: the apply changes fields of others, and ``force`` is not set.
        FieldError: a list lacks its keys, or names an element twice.
    """
    kind = type_of_object(applied, schema)
    applied = _without_managed_fields(_without_nulls(applied))
    me = Owner(manager, APPLY, str(applied.get("apiVersion", "")), subresource)
    before: Owners = owners_of(live) or {}
    if live is not None and not before:
        before = _before_first_apply(live, now, subresource, schema)
    last = before[me].fields if me in before else EMPTY
    claimed = paths_of(applied, kind)
    owners = with_entry(before, me, claimed, now)
    owned = all_fields(owners) | claimed
    merged = merge(_without_managed_fields(live or {}), applied, kind)
    merged = Removal(surrendered(last, owned, kind), owned).apply(merged, kind)
    remaining = _after_write(live, merged, owners, me, kind, force=force)
    return _stored(live, merged, before, remaining)


def _after_write(
    live: JSONObject | None,
    merged: JSONObject,
    owners: Owners,
    me: Owner,
    kind: FieldType,
    *,
    force: bool,
) -> Owners:
    changes = compare(_without_managed_fields(live or {}), merged, kind)
    written = changes.written
    contested = [
        (owner, path)
        for owner, entry in owners.items()
        if owner != me
        for path in entry.fields & written
    ]
    if contested and not force and not _is_kubectls_own(live, contested, me, kind):
        raise ApplyConflict(contested)
    return without_fields(owners, written | frozenset(changes.removed), sparing=me)


def _is_kubectls_own(
    live: JSONObject | None, contested: list[tuple[Owner, Path]], me: Owner, kind: FieldType
) -> bool:
    """Whether all that is contested comes from kubectl's client-side apply, which a server-side
    apply by kubectl succeeds: it is what the annotation says was applied last, and still so."""
    if me.manager != "kubectl" or live is None:
        return False
    last = _last_applied(live)
    if last is None:
        return False
    differing = compare(last, _without_managed_fields(live), kind)
    agreed = paths_of(last, kind) - differing.written - differing.removed
    return all(path in agreed for _, path in contested)


def _last_applied(live: JSONObject) -> JSONObject | None:
    metadata = live.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(_LAST_APPLIED) if isinstance(annotations, dict) else None
    try:
        last = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return None
    return last if isinstance(last, dict) else None


def _stored(
    live: JSONObject | None, merged: JSONObject, before: Owners, owners: Owners
) -> JSONObject:
    same_owners = {o: e.fields for o, e in before.items()} == {
        o: e.fields for o, e in owners.items()
    }
    if live is not None and same_owners and _same_but_owners(live, merged):
        return live
    return with_owners(merged, owners.values())


def _same_but_owners(left: JSONObject, right: JSONObject) -> bool:
    return left is right or _without_managed_fields(left) == _without_managed_fields(right)


def track_update(
    old: JSONObject | None,
    new: JSONObject,
    *,
    manager: str,
    now: str,
    subresource: str = "",
    schema: JSONObject | None,
) -> JSONObject:
    """Return ``new`` with the ownership of what it changes passed to ``manager``.

    ``old`` is None for a create. A ``managedFields`` list that the writer sent counts as the state
    before; a list with one empty entry clears it. Of an object without, nobody's changes are noted
    until somebody applies.
    """
    kind = type_of_object(new, schema)
    me = Owner(manager, UPDATE, str(new.get("apiVersion", "")), subresource)
    sent = owners_of(new)
    before = sent if sent or _is_reset(new) else owners_of(old)
    if old is not None and not before:
        return with_owners(new, ())
    changes = compare(
        _before_create(schema) if old is None else _without_managed_fields(old),
        _without_managed_fields(new),
        kind,
    )
    touched = changes.written | frozenset(changes.removed)
    if not touched and before is not None:
        return with_owners(new, before.values())
    owners = without_fields(before or {}, touched, sparing=me)
    mine: FieldSet = owners[me].fields if me in owners else EMPTY
    mine = (mine - changes.removed) | changes.written
    return with_owners(new, capped(with_entry(owners, me, mine, now)).values())


def _before_first_apply(
    live: JSONObject, now: str, subresource: str, schema: JSONObject | None
) -> Owners:
    """Who owns what is found at the first apply to an object whose owners nobody noted."""
    kind = type_of_object(live, schema)
    found = compare(_before_create(schema), _without_managed_fields(live), kind).written
    of_status = frozenset(path for path in found if path[0] == "f:status")
    owner = Owner(BEFORE_FIRST_APPLY, UPDATE, str(live.get("apiVersion", "")), subresource)
    return with_entry({}, owner, of_status if subresource else found - of_status, now)


def _before_create(schema: JSONObject | None) -> JSONObject:
    """What a create is compared with: built-in kinds always have a spec and a status."""
    empty: JSONObject = {"metadata": {}}
    return empty if schema is not None else {**empty, "spec": {}, "status": {}}


def _is_reset(obj: JSONObject) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and metadata.get("managedFields") == [{}]


def _without_managed_fields(obj: JSONObject) -> JSONObject:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _without_nulls(value: JSONObject) -> JSONObject:
    """A null in an applied configuration claims nothing."""
    return {
        key: _without_nulls(member) if isinstance(member, dict) else member
        for key, member in value.items()
        if member is not None
    }
