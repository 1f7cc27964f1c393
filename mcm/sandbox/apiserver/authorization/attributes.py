"""What of a request is decided about: who, which verb, on what.

Read off the path alone: what is not served here can be forbidden all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final
from urllib.parse import unquote

from mcm.sandbox.apiserver.authentication.users import User

_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})


@final
@dataclass(frozen=True, slots=True)
class Attributes:
    """A request for a resource, or, where ``resource`` is empty, for a ``path``."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def is_for_resource(self) -> bool:
        return bool(self.resource)

    @property
    def full_resource(self) -> str:
        """``pods``, or ``pods/status``, as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def attributes_of(user: User, method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """Return what a request is about."""
    match [unquote(part) for part in path.strip("/").split("/")]:
        case ["api", _, first, *rest]:
            return _of_resource(user, "", method, [first, *rest], query)
        case ["apis", group, _, first, *rest]:
            return _of_resource(user, group, method, [first, *rest], query)
        case _:
            return Attributes(user, method.lower(), path=path)


def _of_resource(
    user: User, group: str, method: str, parts: list[str], query: Mapping[str, str]
) -> Attributes:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3]
    verb = _VERBS.get(method, method.lower())
    if not name and verb == "get":
        verb = "watch" if query.get("watch", "") in _TRUE else "list"
        name = _selected_name(query.get("fieldSelector", ""))
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Attributes(
        user,
        verb,
        group=group,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _selected_name(selector: str) -> str:
    """Return the one object that a list or watch can show, so that a rule for it suffices."""
    for term in selector.split(","):
        field, equals, value = term.partition("=")
        if equals and field.strip() == "metadata.name":
            return value.removeprefix("=").strip()
    return ""
