"""Roles and bindings: rules that say something, references that stay what they are.

Upstream refuses a role or binding that gives more than its writer has; this is not checked here.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    invalid,
    not_supported,
    required,
    wrong_value,
)
from mcm.sandbox.apiserver.kinds.access import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    RBAC_GROUP,
    ROLE_BINDINGS,
    ROLES,
)
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.strategies.strategy import (
    Strategy,
    name_of,
    object_in,
    objects_in,
    texts_in,
)

_SUBJECT_GROUPS = {"User": RBAC_GROUP, "Group": RBAC_GROUP}


def _role(_: ServerState, info: ResourceInfo, obj: JSONObject, __: Stored | None) -> None:
    causes: list[StatusCause] = []
    for index, rule in enumerate(objects_in(obj, "rules")):
        causes += _faults_of_rule(rule, f"rules[{index}]", namespaced=info.namespaced)
    if causes:
        raise invalid(info, name_of(obj), causes)
    obj.setdefault("rules", None)  # Go does not leave it out


def _faults_of_rule(rule: JSONObject, path: str, *, namespaced: bool) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if not texts_in(rule, "verbs"):
        causes.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    groups, resources = texts_in(rule, "apiGroups"), texts_in(rule, "resources")
    paths = texts_in(rule, "nonResourceURLs")
    if paths:
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            causes.append(wrong_value(f"{path}.nonResourceURLs", paths, why))
        if groups or resources or texts_in(rule, "resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            causes.append(wrong_value(f"{path}.nonResourceURLs", paths, why))
        return causes
    if not groups:
        why = "resource rules must supply at least one api group"
        causes.append(required(f"{path}.apiGroups", why))
    if not resources:
        why = "resource rules must supply at least one resource"
        causes.append(required(f"{path}.resources", why))
    return causes


def _binding(_: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    role = object_in(obj, "roleRef")
    role["apiGroup"] = role.get("apiGroup") or RBAC_GROUP
    obj["roleRef"] = role
    causes = _faults_of_role(role, namespaced=info.namespaced)
    subjects = objects_in(obj, "subjects")
    for index, subject in enumerate(subjects):
        if not subject.get("apiGroup") and subject.get("kind") in _SUBJECT_GROUPS:
            subject["apiGroup"] = _SUBJECT_GROUPS[str(subject["kind"])]
        causes += _faults_of_subject(subject, f"subjects[{index}]", namespaced=info.namespaced)
    if subjects:
        obj["subjects"] = subjects
    if live is not None and role != live.body.get("roleRef"):
        causes.append(wrong_value("roleRef", role, "cannot change roleRef"))
    if causes:
        raise invalid(info, name_of(obj), causes)


def _faults_of_role(role: JSONObject, *, namespaced: bool) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if role["apiGroup"] != RBAC_GROUP:
        group = str(role["apiGroup"])
        causes.append(not_supported("roleRef.apiGroup", group, (RBAC_GROUP,)))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    kind = str(role.get("kind") or "")
    if kind not in kinds:
        causes.append(not_supported("roleRef.kind", kind, kinds))
    if not role.get("name"):
        causes.append(required("roleRef.name"))
    return causes


def _faults_of_subject(subject: JSONObject, path: str, *, namespaced: bool) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if not subject.get("name"):
        causes.append(required(f"{path}.name"))
    kind, group = str(subject.get("kind") or ""), str(subject.get("apiGroup") or "")
    match kind:
        case "ServiceAccount":
            if group:
                causes.append(not_supported(f"{path}.apiGroup", group, ("",)))
            if not namespaced and not subject.get("namespace"):
                causes.append(required(f"{path}.namespace"))
        case "User" | "Group":
            if group != RBAC_GROUP:
                causes.append(not_supported(f"{path}.apiGroup", group, (RBAC_GROUP,)))
        case _:
            kinds = ("ServiceAccount", "User", "Group")
            causes.append(not_supported(f"{path}.kind", kind, kinds))
    return causes


RBAC_STRATEGIES: Mapping[str, Strategy] = {
    ROLES: _role,
    CLUSTER_ROLES: _role,
    ROLE_BINDINGS: _binding,
    CLUSTER_ROLE_BINDINGS: _binding,
}
