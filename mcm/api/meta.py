"""What all API objects share: metadata, owner references, selectors, the resource descriptor.

Types are frozen and declare only the fields the project uses: an update that changes nothing else
compares equal and wakes nobody. Fields not declared survive in the API server, because writes are
patches (:mod:`mcm.client`). Containers inside are read-only by convention; never mutate them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec

JSONObject = dict[str, object]
"""A decoded JSON object that is somebody else's: carried, never interpreted."""


class ApiStruct(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """Base of all API types. ``gc=False``: objects decoded from JSON hold no cycles."""


class OwnerReference(ApiStruct, frozen=True, kw_only=True):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class Fault(ApiStruct, frozen=True, kw_only=True):
    """A part of an object that could not be read. ``path`` is the JSON path from its root."""

    path: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"

    def concerns(self, path: str) -> bool:
        """Tell whether what stands at ``path``, or a part of it, was not read."""
        return _is_below(self.path, path) or _is_below(path, self.path)


def _is_below(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}["))


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = msgspec.field(name="-", default=())
    """What could not be read of the object, which then holds only the rest. Never on the wire."""

    def controller_ref(self) -> OwnerReference | None:
        """Return the owner reference with ``controller: true``, if any."""
        for reference in self.owner_references:
            if reference.controller:
                return reference
        return None

    def is_faulty_at(self, *paths: str) -> bool:
        """Tell whether any of these parts of the object could not be read."""
        return any(fault.concerns(path) for fault in self.faults for path in paths)

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` if cluster-scoped: the key of stores and queues."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class KubeObject(Protocol):
    """A struct with metadata; every type named in a :class:`Resource` is one."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=KubeObject)
T_co = TypeVar("T_co", bound=KubeObject, covariant=True)


def split_key(key: str) -> tuple[str, str]:
    """Split a store key into (namespace, name); the former is empty if cluster-scoped."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def is_controlled_by(meta: ObjectMeta, owner_uid: str) -> bool:
    ref = meta.controller_ref()
    return ref is not None and ref.uid == owner_uid


class LabelSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct, frozen=True, kw_only=True):
    """Matching lives in :mod:`mcm.api.selectors`."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Resource(Generic[T_co]):
    """A served resource and the type its objects decode to.

    ``in_part``: an object that does not wholly have the form of its type is read as far as it does
    (see ``ObjectMeta.faults``), so that people can be told on it and that it can be deleted.
    """

    group: str
    version: str
    plural: str
    kind: str
    type: type[T_co]
    namespaced: bool = True
    in_part: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """``plural.group``, as in ``kubectl api-resources``; the label of metrics and logs."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the URL path. Without ``namespace``, a namespaced resource's path spans all."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)
