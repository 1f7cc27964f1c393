"""The ClusterRoles that people and charts expect of a cluster, and who is given them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds.access import (
    AUTHENTICATION_GROUP,
    AUTHORIZATION_GROUP,
    RBAC_GROUP,
)

_VERSION = f"{RBAC_GROUP}/v1"
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_HEALTH = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_HEALTH)
_CONFIGURATION = (
    "configmaps",
    "endpoints",
    "persistentvolumeclaims",
    "pods",
    "serviceaccounts",
    "services",
)
_OBSERVED = ("events", "namespaces", "pods/log", "pods/status")
_WORKLOADS = (
    "controllerrevisions",
    "daemonsets",
    "deployments",
    "deployments/scale",
    "replicasets",
    "replicasets/scale",
    "statefulsets",
    "statefulsets/scale",
)


def _rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> JSONObject:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def _paths(*paths: str) -> JSONObject:
    return {"nonResourceURLs": list(paths), "verbs": ["get"]}


_VIEW = [
    _rule([""], [*_CONFIGURATION, *_OBSERVED], _READ),
    _rule(["apps"], _WORKLOADS, _READ),
    _rule(["policy"], ["poddisruptionbudgets"], _READ),
    _rule(["networking.k8s.io"], ["networkpolicies"], _READ),
]
_EDIT = [
    *_VIEW,
    _rule([""], [*_CONFIGURATION, "secrets"], [*_READ, *_WRITE]),
    _rule([""], ["pods/eviction", "serviceaccounts/token"], ["create"]),
    _rule([""], ["serviceaccounts"], ["impersonate"]),
    _rule(["apps"], _WORKLOADS, _WRITE),
    _rule(["policy"], ["poddisruptionbudgets"], _WRITE),
    _rule(["networking.k8s.io"], ["networkpolicies"], _WRITE),
    _rule(["coordination.k8s.io"], ["leases"], [*_READ, *_WRITE]),
]
_ADMIN = [
    *_EDIT,
    _rule([RBAC_GROUP], ["rolebindings", "roles"], [*_READ, *_WRITE]),
    _rule([AUTHORIZATION_GROUP], ["localsubjectaccessreviews"], ["create"]),
]
_OWN_REVIEWS = [
    _rule(
        [AUTHORIZATION_GROUP], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]
    ),
    _rule([AUTHENTICATION_GROUP], ["selfsubjectreviews"], ["create"]),
]
_DELEGATOR = [
    _rule([AUTHENTICATION_GROUP], ["tokenreviews"], ["create"]),
    _rule([AUTHORIZATION_GROUP], ["subjectaccessreviews"], ["create"]),
]

_ROLES: dict[str, list[JSONObject]] = {
    "admin": _ADMIN,
    "cluster-admin": [
        _rule(["*"], ["*"], ["*"]),
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
    "edit": _EDIT,
    "system:auth-delegator": _DELEGATOR,
    "system:basic-user": _OWN_REVIEWS,
    "system:discovery": [_paths(*_DISCOVERY)],
    "system:monitoring": [_paths(*_HEALTH[:3], "/livez/*", "/readyz/*", "/metrics")],
    "system:public-info-viewer": [_paths(*_HEALTH)],
    "view": _VIEW,
}
_GIVEN: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
    "system:monitoring": ("system:monitoring",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
}
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def standard_roles() -> Iterator[JSONObject]:
    """Yield the roles with their bindings. ``admin``, ``edit`` and ``view`` know the kinds that
    this server serves; they aggregate nothing."""
    for name, rules in _ROLES.items():
        meta = {"name": name, "labels": _LABELS}
        yield {"apiVersion": _VERSION, "kind": "ClusterRole", "metadata": meta, "rules": rules}
    for name, groups in _GIVEN.items():
        yield {
            "apiVersion": _VERSION,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name, "labels": _LABELS},
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": g} for g in groups],
        }
