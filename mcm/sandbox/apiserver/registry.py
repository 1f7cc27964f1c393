"""Which resources the server serves: one frozen :class:`ResourceInfo` a group, version and plural.

Built-in kinds are registered once (:mod:`mcm.sandbox.apiserver.kinds.builtin`), custom ones come
and go with their CustomResourceDefinitions (:mod:`mcm.sandbox.apiserver.definitions`). Discovery,
OpenAPI and tables are rendered from here; :attr:`Registry.version` moves with each change, so that
they may be cached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final
from urllib.parse import quote

from mcm.api.meta import JSONObject

STANDARD_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
CREATE_ONLY = ("create",)

_NO_SELECTORS: Mapping[str, str] = MappingProxyType({})
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = {None: 2, "beta": 1, "alpha": 0}


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of ``kubectl get``. ``json_path`` is in the CRD's simple form (``.status.phase``);
    ``type`` one of string, integer, number, boolean, date; priority above 0 shows in wide only."""

    name: str
    type: str
    json_path: str
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where ``/scale`` finds its numbers; JSON paths such as ``.spec.replicas``.

    ``label_selector`` is empty if the kind declares none, and names either a serialised selector
    (text) or a selector object.
    """

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class ResourceInfo:
    """One served resource: how it is called, and which rules its writes follow.

    ``field_selectors`` maps a selector's name to a dotted path (``spec.nodeName``), beyond
    ``metadata.name`` and ``metadata.namespace``, which every kind has. ``schema`` is the structural
    OpenAPI v3 schema of a custom resource's version. ``subresources`` are names only: ``status``,
    ``scale``, ``eviction``, ``binding``.

    ``tracks_generation``: metadata.generation is kept (many built-in kinds have none).
    ``unconditional_update``: a PUT may leave resourceVersion out. ``create_on_update``: a PUT of an
    absent object creates it. ``returns_deleted``: a deletion that removes the object at once
    answers with its last state rather than a Status. ``initial_status``: what a create makes of a
    built-in kind's status; None keeps what was sent (nodes register with theirs); a custom kind's
    is dropped where it is a subresource. ``storage_version`` is the apiVersion's version under
    which objects are kept, if it is not this one; ``storage_group`` likewise (the two Event groups
    share one storage).
    """

    group: str
    version: str
    plural: str
    kind: str
    singular: str = ""
    list_kind: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STANDARD_VERBS
    subresources: frozenset[str] = frozenset()
    printer_columns: tuple[PrinterColumn, ...] = ()
    schema: JSONObject | None = field(default=None, compare=False, repr=False)
    builtin: bool = False
    scale: ScalePaths | None = None
    field_selectors: Mapping[str, str] = field(default_factory=lambda: _NO_SELECTORS, compare=False)
    tracks_generation: bool = True
    unconditional_update: bool = False
    create_on_update: bool = False
    returns_deleted: bool = False
    initial_status: JSONObject | None = field(default=None, compare=False)
    storage_group: str | None = None
    storage_version: str | None = None

    def __post_init__(self) -> None:
        if not self.singular:
            object.__setattr__(self, "singular", self.kind.lower())
        if not self.list_kind:
            object.__setattr__(self, "list_kind", f"{self.kind}List")

    @property
    def api_version(self) -> str:
        """``group/version``, or ``version`` alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """``plural.group``, the name in messages; the plural alone in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored_api_version(self) -> str:
        """The apiVersion its objects are kept under."""
        group = self.group if self.storage_group is None else self.storage_group
        version = self.storage_version or self.version
        return f"{group}/{version}" if group else version

    @property
    def storage(self) -> str:
        """The key of its collection in the store: all versions of a kind share one."""
        group = self.group if self.storage_group is None else self.storage_group
        return f"{self.plural}.{group}" if group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, an object or its subresource, percent-encoded."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Return a key that sorts API versions worst first: GA over beta over alpha, then by number;
    names of another form come before all of them."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, version)
    major, stage, minor = match.groups()
    return (_STAGES[stage], int(major), int(minor or 0), "")


@final
class Registry:
    """All served resources. Not thread-safe; lookups are dictionary lookups."""

    def __init__(self, resources: Iterable[ResourceInfo] = ()) -> None:
        self._by_plural: dict[tuple[str, str, str], ResourceInfo] = {}
        self._by_kind: dict[tuple[str, str, str], ResourceInfo] = {}
        self._version = 0
        for info in resources:
            self.add(info)

    @property
    def version(self) -> int:
        """Moves whenever a resource is added, replaced or removed."""
        return self._version

    def add(self, info: ResourceInfo) -> None:
        """Serve ``info``, replacing one of the same group, version and plural."""
        old = self._by_plural.get((info.group, info.version, info.plural))
        if old is not None:
            self._by_kind.pop((old.group, old.version, old.kind), None)
        self._by_plural[info.group, info.version, info.plural] = info
        self._by_kind[info.group, info.version, info.kind] = info
        self._version += 1

    def remove(self, group: str, plural: str) -> None:
        """Stop serving every version of a resource; unknown ones are no error."""
        gone = [i for i in self if i.group == group and i.plural == plural]
        for info in gone:
            del self._by_plural[info.group, info.version, info.plural]
            self._by_kind.pop((info.group, info.version, info.kind), None)
        if gone:
            self._version += 1

    def find(self, group: str, version: str, plural: str) -> ResourceInfo | None:
        return self._by_plural.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> ResourceInfo | None:
        return self._by_kind.get((group, version, kind))

    def of_group_kind(self, group: str, kind: str) -> ResourceInfo | None:
        """Return the preferred version of a kind, as an owner reference may name any of them."""
        found = [i for i in self if i.group == group and i.kind == kind]
        return max(found, key=lambda i: version_priority(i.version), default=None)

    def of_storage(self, storage: str) -> ResourceInfo | None:
        """Return the preferred version of what is kept under a storage key."""
        found = [i for i in self if i.storage == storage and i.api_version == i.stored_api_version]
        return found[0] if found else next((i for i in self if i.storage == storage), None)

    def collection_path(self, manifest: Mapping[str, object]) -> str:
        """Return the URL path a manifest is created at; namespaced objects without a namespace go
        to ``default``. Raises LookupError if nothing of its apiVersion and kind is served."""
        group, _, version = str(manifest.get("apiVersion", "")).rpartition("/")
        info = self.by_kind(group, version, str(manifest.get("kind", "")))
        if info is None:
            raise LookupError(f"no {manifest.get('apiVersion')} {manifest.get('kind')} is served")
        meta = manifest.get("metadata")
        namespace = meta.get("namespace") if isinstance(meta, dict) else None
        return info.path(str(namespace or "default"))

    def groups(self) -> tuple[str, ...]:
        """Return the served groups; the core group ``""`` first, others by name."""
        return tuple(sorted({info.group for info in self}))

    def versions(self, group: str) -> tuple[str, ...]:
        """Return a group's served versions, the preferred one first."""
        found = {info.version for info in self if info.group == group}
        return tuple(sorted(found, key=version_priority, reverse=True))

    def resources(self, group: str, version: str) -> tuple[ResourceInfo, ...]:
        """Return what one group and version serve, by plural."""
        found = (i for i in self if i.group == group and i.version == version)
        return tuple(sorted(found, key=lambda info: info.plural))

    def __iter__(self) -> Iterator[ResourceInfo]:
        return iter(tuple(self._by_plural.values()))

    def __len__(self) -> int:
        return len(self._by_plural)
