"""The decision about a request, and its refusal in upstream's words."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.authorization.attributes import Attributes
from mcm.sandbox.apiserver.authorization.rbac import Decision, decide
from mcm.sandbox.apiserver.errors import StatusError
from mcm.sandbox.apiserver.store import Store

Authorization = Literal["AlwaysAllow", "RBAC"]
"""Who decides: nobody, or the roles and bindings of the cluster."""


def judged(mode: Authorization, store: Store, attributes: Attributes) -> Decision:
    """Return whether a request is allowed."""
    return Decision(allowed=True) if mode == "AlwaysAllow" else decide(store, attributes)


def require(mode: Authorization, store: Store, attributes: Attributes) -> None:
    """Raise StatusError (403) unless the request is allowed."""
    decision = judged(mode, store, attributes)
    if not decision.allowed:
        raise refused(attributes, decision.reason)


def refused(attributes: Attributes, reason: str) -> StatusError:
    """Return the refusal of a request; ``reason`` may say what is wrong with the rules."""
    why = _what(attributes) + (f": {reason}" if reason else "")
    resource, group, name = attributes.resource, attributes.group, attributes.name
    qualified = f"{resource}.{group}" if group else resource
    subject = f'{qualified} "{name}" is ' if name else f"{qualified} is "
    known = {"name": name, "group": group, "kind": resource}
    details: JSONObject = {field: value for field, value in known.items() if value}
    return StatusError(
        HTTPStatus.FORBIDDEN,
        "Forbidden",
        f"{subject if resource else ''}forbidden: {why}",
        details=details,
    )


def _what(attributes: Attributes) -> str:
    user, verb = attributes.user.name, attributes.verb
    if not attributes.is_for_resource:
        return f'User "{user}" cannot {verb} path "{attributes.path}"'
    namespace = attributes.namespace
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    what = f'resource "{attributes.full_resource}" in API group "{attributes.group}"'
    return f'User "{user}" cannot {verb} {what} {where}'
