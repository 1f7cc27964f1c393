"""``metadata.managedFields``: who set which field, and how that reads on the wire.

Each entry belongs to a manager, an operation (Apply or Update), an API version and a subresource;
two entries never share all four.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.sets import EMPTY, FieldSet, decode, encode

APPLY = "Apply"
UPDATE = "Update"

MAX_UPDATERS = 10
"""As upstream: beyond so many Update entries, the oldest are joined into one."""
ANCIENT = "ancient-changes"

BEFORE_FIRST_APPLY = "before-first-apply"
"""As upstream: who is said to own what nobody was noted for."""

_METADATA_OF_SERVER = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
)
NOBODYS: FieldSet = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in _METADATA_OF_SERVER),
    }
)
"""What identifies an object or is kept by the server has no manager."""


@final
@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a set of fields."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        """As conflicts name it: an updater with the version it wrote in, too."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@final
@dataclass(frozen=True, slots=True)
class Ownership:
    """One entry: an owner, its fields, and when it last changed them (RFC 3339).

    ``wire`` is the entry as it was read, which is cheaper to keep than to write again.
    """

    owner: Owner
    fields: FieldSet
    time: str
    wire: JSONObject | None = field(default=None, compare=False, repr=False)

    def document(self) -> JSONObject:
        if self.wire is not None:
            return self.wire
        entry: JSONObject = {
            "manager": self.owner.manager,
            "operation": self.owner.operation,
            "apiVersion": self.owner.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": encode(self.fields),
        }
        if self.owner.subresource:
            entry["subresource"] = self.owner.subresource
        return entry


Owners = Mapping[Owner, Ownership]


def read_owners(entries: object) -> dict[Owner, Ownership] | None:
    """Read ``managedFields``; None if the list is absent or malformed."""
    if not isinstance(entries, list):
        return None
    owners: dict[Owner, Ownership] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            return None
        owner = Owner(
            manager=str(entry.get("manager", "")),
            operation=str(entry.get("operation", UPDATE)),
            api_version=str(entry.get("apiVersion", "")),
            subresource=str(entry.get("subresource", "")),
        )
        fields = decode(entry.get("fieldsV1"))
        if fields:
            owners[owner] = Ownership(owner, fields, str(entry.get("time", "")), entry)
    return owners


def owners_of(obj: Mapping[str, object] | None) -> dict[Owner, Ownership] | None:
    """Read the owners out of an object; None if it names none."""
    metadata = obj.get("metadata") if obj is not None else None
    return read_owners(metadata.get("managedFields")) if isinstance(metadata, dict) else None


def with_owners(obj: JSONObject, owners: Iterable[Ownership]) -> JSONObject:
    """Return the object with its ``managedFields`` written: appliers first, then by time."""
    ordered = sorted(
        owners, key=lambda o: (o.owner.operation != APPLY, o.time, o.owner.manager, str(o.owner))
    )
    metadata = obj.get("metadata")
    kept: JSONObject = {**metadata} if isinstance(metadata, dict) else {}
    kept.pop("managedFields", None)
    if ordered:
        kept["managedFields"] = [o.document() for o in ordered]
    return {**obj, "metadata": kept}


def all_fields(owners: Owners) -> FieldSet:
    return EMPTY.union(*(o.fields for o in owners.values()))


def without_fields(owners: Owners, fields: FieldSet, *, sparing: Owner) -> dict[Owner, Ownership]:
    """Take fields from everybody but one; who is left with none is dropped."""
    result: dict[Owner, Ownership] = {}
    for owner, entry in owners.items():
        rest = entry
        if owner != sparing and not entry.fields.isdisjoint(fields):
            rest = Ownership(owner, entry.fields - fields, entry.time)
        if rest.fields:
            result[owner] = rest
    return result


def with_entry(owners: Owners, owner: Owner, fields: FieldSet, now: str) -> dict[Owner, Ownership]:
    """Set one owner's fields; its time moves only if they change."""
    result = dict(owners)
    fields -= NOBODYS
    known = result.pop(owner, None)
    if fields and known is not None and known.fields == fields:
        result[owner] = known
    elif fields:
        result[owner] = Ownership(owner, fields, now)
    return result


def capped(owners: Owners) -> dict[Owner, Ownership]:
    """Join the oldest Update entries of one API version while there are too many."""
    updaters = sorted(
        (o for o in owners.values() if o.owner.operation == UPDATE),
        key=lambda o: (o.time, o.owner.manager),
    )
    result = dict(owners)
    surplus = len(updaters) - MAX_UPDATERS
    firsts: dict[str, Owner] = {}
    for entry in updaters if surplus > 0 else ():
        version = entry.owner.api_version
        first = firsts.setdefault(version, entry.owner)
        if first == entry.owner:
            continue
        bucket = Owner(ANCIENT, UPDATE, version)
        joined = result.pop(first).fields | result.pop(entry.owner).fields
        result[bucket] = Ownership(bucket, joined, entry.time)
        firsts[version] = bucket
        surplus -= 1
        if surplus == 0:
            break
    return result
