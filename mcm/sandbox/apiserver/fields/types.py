"""A view on OpenAPI schemas that answers how the fields of an object merge.

Strategic merge patches and field ownership ask the same questions at each step down an object:
what type does this field have, is this list one value, a set or a map, by which keys. The answers
are the ``x-kubernetes-*`` extensions of a schema: a custom resource's own one, or for a built-in
kind ours (:mod:`mcm.sandbox.apiserver.kinds`). Where a schema says nothing, objects are maps that
merge and lists are single values, as upstream treats fields without a schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds import OBJECT_META, builtin_schema

_NOTHING: Mapping[str, object] = MappingProxyType({})


class ListType(Enum):
    """``x-kubernetes-list-type``."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


@final
@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of one value; ``schema`` is empty where nothing is known."""

    schema: Mapping[str, object]

    def child(self, key: str) -> FieldType:
        """Return the type of an object's member."""
        known = _mapping(self.schema.get("properties")).get(key)
        if known is None:
            known = self.schema.get("additionalProperties")
        return FieldType(known) if isinstance(known, dict) else UNKNOWN

    def names(self, key: str) -> bool:
        """Whether ``key`` is a field of the type, rather than an entry of a map."""
        return key in _mapping(self.schema.get("properties"))

    @property
    def element(self) -> FieldType:
        """The type of a list's elements."""
        items = self.schema.get("items")
        return FieldType(items) if isinstance(items, dict) else UNKNOWN

    @property
    def is_atomic_object(self) -> bool:
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def list_type(self) -> ListType:
        declared = self.schema.get("x-kubernetes-list-type")
        return ListType(declared) if declared in ("set", "map") else ListType.ATOMIC

    @property
    def list_keys(self) -> tuple[str, ...]:
        keys = self.schema.get("x-kubernetes-list-map-keys")
        return tuple(str(k) for k in keys) if isinstance(keys, list) else ()

    @property
    def default(self) -> object:
        return self.schema.get("default")

    @property
    def patch_merge_key(self) -> str:
        """The key by which a strategic patch finds list elements; empty for scalars."""
        return str(self.schema.get("x-kubernetes-patch-merge-key", ""))

    @property
    def patch_strategies(self) -> frozenset[str]:
        """``merge``, ``replace`` or ``retainKeys``, or several of them."""
        declared = str(self.schema.get("x-kubernetes-patch-strategy", ""))
        return frozenset(declared.split(",")) - {""}


UNKNOWN = FieldType(_NOTHING)


def root_type(schema: JSONObject | None, *, group: str = "", kind: str = "") -> FieldType:
    """Return the type of a whole object.

    ``schema`` is a custom resource's; without one, ``group`` and ``kind`` choose a built-in type.
    Any object has at least the standard metadata.
    """
    base = schema if schema is not None else builtin_schema(group, kind) or {}
    properties = {
        **_mapping(base.get("properties")),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": OBJECT_META,
    }
    return FieldType({**base, "properties": properties})


def type_of_object(obj: Mapping[str, object], schema: JSONObject | None) -> FieldType:
    """Return :func:`root_type` for an object that says its own ``apiVersion`` and ``kind``."""
    group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
    return root_type(schema, group=group, kind=str(obj.get("kind", "")))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else _NOTHING
