"""From a verb to the request it means: pure functions, no I/O, nothing about credentials.

Names and namespaces are checked here: an empty name would silently turn "delete one" into "delete
all", and a name with a slash would reach another path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from mcm.api.core import PODS
from mcm.api.meta import KubeObject, Resource
from mcm.client.retry import Safety
from mcm.client.transport import Lane, Request

Query = tuple[tuple[str, str], ...]
Body = Mapping[str, object] | msgspec.Struct

_JSON = "application/json"
_ACCEPT = {"Accept": _JSON}
_SEND = {"Accept": _JSON, "Content-Type": _JSON}


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
    """A prepared request, and what the client must know to send it."""

    verb: str
    resource: str
    request: Request
    safety: Safety

    @property
    def mutating(self) -> bool:
        return self.safety is not Safety.READ


def get(resource: Resource[KubeObject], name: str, *, namespace: str) -> Call:
    path = _item_path(resource, name, namespace)
    return _read("GET", resource.name, path)


def raw(path: str, query: Query = ()) -> Call:
    """Prepare a GET of any path, such as ``/version`` or ``/readyz``."""
    if not path.startswith("/"):
        raise ValueError(f"a path starts with a slash: {path!r}")
    return _read("GET", "", path, query)


def list_page(
    resource: Resource[KubeObject],
    *,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
    limit: int | None = None,
    continue_token: str = "",
    resource_version: str = "",
    resource_version_match: str = "",
) -> Call:
    """Prepare one page. With a continue token the server refuses a version: it is in the token."""
    if continue_token:
        resource_version = resource_version_match = ""
    query = _query(
        ("labelSelector", label_selector),
        ("fieldSelector", field_selector),
        ("limit", str(limit) if limit else ""),
        ("continue", continue_token),
        ("resourceVersion", resource_version),
        ("resourceVersionMatch", resource_version_match),
    )
    # Long lists shrink tenfold; watches are never compressed, as that would hold events back.
    headers = {**_ACCEPT, "Accept-Encoding": "gzip"}
    return _read("LIST", resource.name, _collection_path(resource, namespace), query, headers)


def watch(
    resource: Resource[KubeObject],
    *,
    namespace: str = "",
    resource_version: str = "",
    label_selector: str = "",
    field_selector: str = "",
    timeout_seconds: int,
    allow_bookmarks: bool = True,
    send_initial_events: bool = False,
    read_timeout: float | None,
) -> Request:
    """Prepare a watch; ``sendInitialEvents`` requires its match rule, or the server refuses."""
    query = _query(
        ("watch", "1"),
        ("allowWatchBookmarks", "true" if allow_bookmarks else ""),
        ("sendInitialEvents", "true" if send_initial_events else ""),
        ("resourceVersionMatch", "NotOlderThan" if send_initial_events else ""),
        ("resourceVersion", resource_version),
        ("labelSelector", label_selector),
        ("fieldSelector", field_selector),
        ("timeoutSeconds", str(timeout_seconds)),
    )
    return Request(
        "GET",
        _collection_path(resource, namespace),
        query=query,
        headers=_ACCEPT,
        lane=Lane.WATCH,
        read_timeout=read_timeout,
    )


def create(
    resource: Resource[KubeObject], body: Body, *, namespace: str, field_manager: str
) -> Call:
    path = _collection_path(resource, _required_namespace(resource, namespace))
    query = _query(("fieldManager", field_manager))
    request = Request("POST", path, query, _SEND, encode_object(resource, body))
    return Call("CREATE", resource.name, request, Safety.WRITE)


def update(
    resource: Resource[KubeObject],
    name: str,
    body: Body,
    *,
    namespace: str,
    subresource: str,
    field_manager: str,
) -> Call:
    path = _item_path(resource, name, namespace, subresource)
    query = _query(("fieldManager", field_manager))
    request = Request("PUT", path, query, _SEND, encode_object(resource, body))
    return Call("UPDATE", resource.name, request, Safety.WRITE)


def patch(
    resource: Resource[KubeObject],
    name: str,
    patch: Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    namespace: str,
    subresource: str,
    patch_type: PatchType,
    field_manager: str,
    force: bool,
) -> Call:
    """Prepare a patch. ``force`` takes fields over from other managers, in an apply only."""
    if force and patch_type is not PatchType.APPLY:
        raise ValueError("force belongs to server-side apply only")
    path = _item_path(resource, name, namespace, subresource)
    query = _query(("fieldManager", field_manager), ("force", "true" if force else ""))
    headers = {**_ACCEPT, "Content-Type": patch_type.value}
    body = _patch_body(resource, name, patch, patch_type)
    return Call("PATCH", resource.name, Request("PATCH", path, query, headers, body), Safety.WRITE)


def delete(
    resource: Resource[KubeObject],
    name: str,
    *,
    namespace: str,
    uid: str,
    resource_version: str,
    propagation: str,
    grace_period_seconds: int | None,
) -> Call:
    options = _delete_options(
        uid=uid,
        resource_version=resource_version,
        propagation=propagation,
        grace_period_seconds=grace_period_seconds,
    )
    body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", **options})
    path = _item_path(resource, name, namespace)
    request = Request("DELETE", path, headers=_SEND, body=body)
    return Call("DELETE", resource.name, request, Safety.WRITE)


def evict(name: str, *, namespace: str, uid: str, grace_period_seconds: int | None) -> Call:
    """Prepare the eviction of a pod (``policy/v1``)."""
    options = _delete_options(uid=uid, grace_period_seconds=grace_period_seconds)
    eviction: dict[str, object] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    if options:
        eviction["deleteOptions"] = options
    path = _item_path(PODS, name, namespace, "eviction")
    request = Request("POST", path, headers=_SEND, body=msgspec.json.encode(eviction))
    return Call("EVICT", PODS.name, request, Safety.EVICTION)


def encode_object(resource: Resource[KubeObject], body: Body) -> bytes:
    """Encode ``body`` with the resource's apiVersion and kind in front."""
    fields = msgspec.json.decode(msgspec.json.encode(_plain(body)), type=dict[str, msgspec.Raw])
    head: dict[str, object] = {"apiVersion": resource.api_version, "kind": resource.kind}
    return msgspec.json.encode({**head, **{k: v for k, v in fields.items() if k not in head}})


def _plain(body: Body) -> dict[str, object] | msgspec.Struct:
    return body if isinstance(body, msgspec.Struct) else dict(body)


def _patch_body(
    resource: Resource[KubeObject],
    name: str,
    patch: Mapping[str, object] | Sequence[Mapping[str, object]],
    patch_type: PatchType,
) -> bytes:
    if isinstance(patch, Mapping) == (patch_type is PatchType.JSON):
        raise ValueError("a JSON patch is a list of operations, any other patch an object")
    if not isinstance(patch, Mapping):
        return msgspec.json.encode([dict(operation) for operation in patch])
    if patch_type is PatchType.MERGE:
        return msgspec.json.encode(dict(patch))
    metadata = patch.get("metadata")
    named = {**(metadata if isinstance(metadata, Mapping) else {}), "name": name}
    return encode_object(resource, {**patch, "metadata": named})


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


def _read(
    verb: str, resource: str, path: str, query: Query = (), headers: Mapping[str, str] = _ACCEPT
) -> Call:
    return Call(verb, resource, Request("GET", path, query, headers), Safety.READ)


def _query(*pairs: tuple[str, str]) -> Query:
    return tuple((k, v) for k, v in pairs if v)


def _collection_path(resource: Resource[KubeObject], namespace: str) -> str:
    return resource.path(_segment(namespace, "namespace") if namespace else None)


def _item_path(
    resource: Resource[KubeObject], name: str, namespace: str, subresource: str = ""
) -> str:
    namespace = _required_namespace(resource, namespace)
    return resource.path(namespace or None, _segment(name, "name"), subresource or None)


def _required_namespace(resource: Resource[KubeObject], namespace: str) -> str:
    if not resource.namespaced:
        return ""
    return _segment(namespace, f"namespace of a {resource.kind}")


def _segment(text: str, what: str) -> str:
    """Check a path segment as apimachinery does: not empty, no dots only, no slash, no percent."""
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise ValueError(f"not a valid {what}: {text!r}")
    return text
