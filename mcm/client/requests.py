"""What a verb's request consists of: pure functions, no I/O, nothing about credentials.

Names and namespaces are checked here: an empty name would silently turn "delete one" into "delete
all", and a name with a slash would reach another path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from mcm.api.meta import KubeObject, Resource
from mcm.client.retry import Safety
from mcm.client.transport import Lane, Request

Query: TypeAlias = tuple[tuple[str, str], ...]
Body: TypeAlias = Mapping[str, object] | msgspec.Struct
Patch: TypeAlias = Mapping[str, object] | Sequence[Mapping[str, object]]

_JSON = "application/json"
ACCEPT: Mapping[str, str] = MappingProxyType({"Accept": _JSON})
_NONE: Mapping[str, str] = MappingProxyType({})
SEND: Mapping[str, str] = MappingProxyType({"Accept": _JSON, "Content-Type": _JSON})


class PatchType(StrEnum):
    """The content types of a patch: RFC 7396, RFC 6902, strategic (built-in kinds only), apply.

    Apply is sent as YAML by name and JSON by content, which is a subset.
    """

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Call:
    """One verb on one thing, its body encoded: ready to be sent as often as it takes.

    ``verb`` is ours (LIST, EVICT …), ``method`` HTTP's. ``resource`` is None for a raw path, and
    ``name`` empty for a collection. ``uid`` is the precondition of a deletion or eviction.
    """

    verb: str
    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=lambda: ACCEPT)
    body: bytes = b""
    safety: Safety = Safety.READ
    resource: Resource[KubeObject] | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    uid: str = ""
    lane: Lane | None = None

    @property
    def mutating(self) -> bool:
        return self.safety is not Safety.READ

    @property
    def about(self) -> str:
        """The resource's name, as metrics and logs show it; empty for a raw path."""
        return self.resource.name if self.resource is not None else ""

    @property
    def path_form(self) -> str:
        """The path with placeholders for names, so that there are few; for a raw path its root."""
        if self.resource is None:
            return "/" + self.path.split("/")[1]
        return _path_form(self.resource, bool(self.namespace), bool(self.name), self.subresource)

    def request(
        self,
        *,
        user_agent: str,
        lane: Lane,
        timeout: float,
        read_timeout: float | None = None,
        permit: Callable[[], None] | None = None,
        headers: Mapping[str, str] = _NONE,
    ) -> Request:
        """Build the request of one attempt, with ``headers`` that are its own."""
        return Request(
            self.method,
            self.path,
            self.query,
            {**self.headers, "User-Agent": user_agent, **headers},
            self.body,
            self.lane or lane,
            timeout,
            read_timeout,
            permit,
        )


@cache
def _path_form(
    resource: Resource[KubeObject], in_namespace: bool, named: bool, subresource: str
) -> str:
    whole = resource.path(
        "{namespace}" if in_namespace else None, "{name}" if named else None, subresource or None
    )
    return unquote(whole)


# Bodies -------------------------------------------------------------------------------------------


def encode_object(resource: Resource[KubeObject], body: Body) -> bytes:
    """Encode ``body`` with the resource's apiVersion and kind in front."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    if isinstance(body, Mapping):
        return msgspec.json.encode({**head, **{k: v for k, v in body.items() if k not in head}})
    # A struct declares neither of the two: its own encoding goes on where the head's ends.
    begin, rest = msgspec.json.encode(head), msgspec.json.encode(body)
    return begin if rest == b"{}" else begin[:-1] + b"," + rest[1:]


def patch_body(
    resource: Resource[KubeObject], name: str, patch: Patch, patch_type: PatchType
) -> bytes:
    """Encode a patch; an apply and a strategic patch say which object they are for."""
    if isinstance(patch, Mapping) == (patch_type is PatchType.JSON):
        raise ValueError("a JSON patch is a list of operations, any other patch an object")
    if not isinstance(patch, Mapping):
        return msgspec.json.encode([dict(operation) for operation in patch])
    if patch_type is PatchType.MERGE:
        return msgspec.json.encode(dict(patch))
    metadata = patch.get("metadata")
    named = {**(metadata if isinstance(metadata, Mapping) else {}), "name": name}
    return encode_object(resource, {**patch, "metadata": named})


def delete_body(
    *, uid: str, resource_version: str, propagation: str, grace_period_seconds: int | None
) -> bytes:
    """Encode the options of a deletion."""
    options = _delete_options(
        uid=uid,
        resource_version=resource_version,
        propagation=propagation,
        grace_period_seconds=grace_period_seconds,
    )
    return msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", **options})


def eviction_body(
    name: str, *, namespace: str, uid: str, grace_period_seconds: int | None
) -> bytes:
    """Encode the eviction of a pod (``policy/v1``)."""
    options = _delete_options(uid=uid, grace_period_seconds=grace_period_seconds)
    eviction: dict[str, object] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    if options:
        eviction["deleteOptions"] = options
    return msgspec.json.encode(eviction)


def _delete_options(
    *,
    uid: str = "",
    resource_version: str = "",
    propagation: str = "",
    grace_period_seconds: int | None = None,
) -> dict[str, object]:
    preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
    options: dict[str, object] = {}
    if preconditions:
        options["preconditions"] = preconditions
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    return options


# Paths --------------------------------------------------------------------------------------------


def query_of(*pairs: tuple[str, str]) -> Query:
    """Return the pairs that say something."""
    return tuple((k, v) for k, v in pairs if v)


def collection_path(resource: Resource[KubeObject], namespace: str) -> str:
    """Return the path of a collection; without a namespace, of all namespaces'."""
    return resource.path(_segment(namespace, "namespace") if namespace else None)


def item_path(
    resource: Resource[KubeObject], name: str, namespace: str, subresource: str = ""
) -> str:
    """Return the path of one object. Raises ValueError for a name that is none."""
    namespace = named_namespace(resource, namespace)
    return resource.path(namespace or None, _segment(name, "name"), subresource or None)


def named_namespace(resource: Resource[KubeObject], namespace: str) -> str:
    """Return the namespace an object of this kind is in. Raises ValueError if it is none."""
    if not resource.namespaced:
        return ""
    return _segment(namespace, f"namespace of a {resource.kind}")


def _segment(text: str, what: str) -> str:
    """Check a path segment as apimachinery does: not empty, no dots only, no slash, no percent."""
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise ValueError(f"not a valid {what}: {text!r}")
    return text
