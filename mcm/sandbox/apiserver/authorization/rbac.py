"""What the roles and bindings of a cluster allow.

Aggregated roles have the rules that were written into them; nobody collects any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast, final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.authentication.users import MASTERS, User, service_account
from mcm.sandbox.apiserver.authorization.attributes import Attributes
from mcm.sandbox.apiserver.authorization.rules import allows
from mcm.sandbox.apiserver.kinds.access import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    RBAC_GROUP,
    ROLE_BINDINGS,
    ROLES,
)
from mcm.sandbox.apiserver.store import Store, Stored


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """``reason`` says by which binding it is allowed, or which roles could not be found."""

    allowed: bool
    reason: str = ""


@final
@dataclass(frozen=True, slots=True)
class Grant:
    """The rules that a binding gives a user; ``missing`` says which role it names in vain."""

    described: str
    rules: tuple[JSONObject, ...] = ()
    missing: str = ""


def decide(store: Store, attributes: Attributes) -> Decision:
    if MASTERS in attributes.user.groups:
        return Decision(allowed=True)
    missing: dict[str, None] = {}
    for grant in grants_of(store, attributes.user, attributes.namespace):
        if any(allows(rule, attributes) for rule in grant.rules):
            return Decision(True, f"RBAC: allowed by {grant.described}")
        if grant.missing:
            missing[grant.missing] = None
    listed = ", ".join(missing)
    if len(missing) > 1:
        listed = f"[{listed}]"
    return Decision(allowed=False, reason=f"RBAC: {listed}" if listed else "")


def grants_of(store: Store, user: User, namespace: str) -> Iterator[Grant]:
    """Yield what bindings of the cluster, and of a namespace, give a user."""
    for binding in store.collection(CLUSTER_ROLE_BINDINGS).ordered(None):
        yield from _granted(store, binding, user)
    if namespace:
        for binding in store.collection(ROLE_BINDINGS).ordered(namespace):
            yield from _granted(store, binding, user)


def _granted(store: Store, binding: Stored, user: User) -> Iterator[Grant]:
    for subject in _objects(binding.body.get("subjects")):
        if _is_user(subject, user, binding.namespace):
            yield _grant(store, binding, subject)
            return


def _grant(store: Store, binding: Stored, subject: JSONObject) -> Grant:
    reference = cast(JSONObject, binding.body["roleRef"])
    kind, name = str(reference.get("kind")), str(reference.get("name"))
    title = f"{binding.name}/{binding.namespace}" if binding.namespace else binding.name
    binding_kind = "RoleBinding" if binding.namespace else "ClusterRoleBinding"
    to = _described(subject, binding.namespace)
    described = f'{binding_kind} "{title}" of {kind} "{name}" to {to}'
    if kind == "Role":
        role = store.collection(ROLES).get(f"{binding.namespace}/{name}")
    else:
        role = store.collection(CLUSTER_ROLES).get(name)
    if role is None:
        return Grant(described, missing=f'{kind.lower()}.{RBAC_GROUP} "{name}" not found')
    return Grant(described, tuple(_objects(role.body.get("rules"))))


def _is_user(subject: JSONObject, user: User, namespace: str) -> bool:
    name = str(subject.get("name"))
    match subject.get("kind"):
        case "User":
            return name == user.name
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            home = str(subject.get("namespace") or namespace)
            return service_account(home, name).name == user.name
        case _:
            return False


def _described(subject: JSONObject, namespace: str) -> str:
    name = str(subject.get("name"))
    if subject.get("kind") == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f'{subject.get("kind")} "{name}"'


def _objects(found: object) -> list[JSONObject]:
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
