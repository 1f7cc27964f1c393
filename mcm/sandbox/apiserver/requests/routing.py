"""Which resource a URL path names, percent-encoded as it arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final
from urllib.parse import unquote

from mcm.sandbox.apiserver.registry import Registry, ResourceInfo

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
# Below /namespaces/NAME these are subresources of the Namespace; anything else is a collection.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@final
@dataclass(frozen=True, slots=True)
class Target:
    """A collection (``name`` empty), an object or a subresource of it. ``namespace`` is empty for
    cluster-scoped resources, and for namespaced ones across all namespaces."""

    info: ResourceInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def resolve(registry: Registry, path: str) -> Target | None:
    """Return what a path under ``/api`` or ``/apis`` names; None if nothing is served there."""
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    match parts:
        case ["api", version, *rest]:
            return _in_version(registry, "", version, rest)
        case ["apis", group, version, *rest]:
            return _in_version(registry, group, version, rest)
        case _:
            return None


def _in_version(registry: Registry, group: str, version: str, parts: list[str]) -> Target | None:
    if len(parts) > 2 and parts[0] == "namespaces":
        core = group == ""
        if not (core and len(parts) == 3 and parts[2] in _NAMESPACE_SUBRESOURCES):
            return _resource(registry, group, version, parts[2:], namespace=parts[1])
    return _resource(registry, group, version, parts)


def _resource(
    registry: Registry, group: str, version: str, parts: list[str], *, namespace: str = ""
) -> Target | None:
    if not 1 <= len(parts) <= 3 or not all(parts):
        return None
    info = registry.find(group, version, parts[0])
    if info is None or (namespace and not info.namespaced):
        return None
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 else ""
    if name and info.namespaced and not namespace:
        return None
    if subresource and subresource not in info.subresources:
        return None
    return Target(info, namespace, name, subresource)


def verb_of(method: str, target: Target, *, watch: bool) -> str:
    """Return the API verb (``get``, ``list``, ``watch`` …); empty for an unknown method."""
    if method == "GET":
        if target.name:
            return "get"
        return "watch" if watch else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return _VERBS.get(method, "")
