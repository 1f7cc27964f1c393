"""Kinds of who may do what: roles and their bindings, and reviews, which are answered, not kept."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds.meta import LABEL_SELECTOR, OBJECT_META
from mcm.sandbox.apiserver.kinds.notation import (
    ANY_OBJECT,
    BOOLEAN,
    LONG,
    STRING,
    TIME,
    atomic,
    described,
    list_of,
    map_of,
    strings,
    struct,
)
from mcm.sandbox.apiserver.registry import CREATE_ONLY, ResourceInfo

RBAC_GROUP = "rbac.authorization.k8s.io"
AUTHENTICATION_GROUP = "authentication.k8s.io"
AUTHORIZATION_GROUP = "authorization.k8s.io"

ROLES = f"roles.{RBAC_GROUP}"
ROLE_BINDINGS = f"rolebindings.{RBAC_GROUP}"
CLUSTER_ROLES = f"clusterroles.{RBAC_GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{RBAC_GROUP}"

# Schemas ----------------------------------------------------------------------------------------

_TEXTS = list_of(STRING)

POLICY_RULE = struct(
    {
        "apiGroups": described(_TEXTS, "Groups of the resources; * is all, an empty one the core."),
        "nonResourceURLs": described(_TEXTS, "Paths, * at the end for all that begin so."),
        "resourceNames": described(_TEXTS, "Objects that the rule is for; none given: all."),
        "resources": described(_TEXTS, "Plurals, with /SUBRESOURCE for one; * is all."),
        "verbs": described(_TEXTS, "What is allowed; * is everything."),
    }
)
_RULES = described(list_of(POLICY_RULE), "What the role allows.")

ROLE = struct(
    {"metadata": OBJECT_META, "rules": _RULES},
    description="Rights within a namespace, for bindings to give.",
)

CLUSTER_ROLE = struct(
    {
        "metadata": OBJECT_META,
        "rules": _RULES,
        "aggregationRule": struct({"clusterRoleSelectors": list_of(LABEL_SELECTOR)}),
    },
    description="Rights in the whole cluster, or in a namespace where a RoleBinding gives them.",
)

_BINDING: dict[str, JSONObject] = {
    "metadata": OBJECT_META,
    "roleRef": described(
        atomic(struct(strings("apiGroup", "kind", "name"))), "The role; it cannot be changed."
    ),
    "subjects": described(
        list_of(atomic(struct(strings("apiGroup", "kind", "name", "namespace")))),
        "Users, groups and service accounts that get the role's rights.",
    ),
}
ROLE_BINDING = struct(_BINDING, description="Gives the rights of a role in a namespace.")
CLUSTER_ROLE_BINDING = struct(_BINDING, description="Gives the rights of a ClusterRole everywhere.")

_USER_INFO = struct(
    {**strings("uid", "username"), "groups": list_of(STRING), "extra": map_of(list_of(STRING))}
)
TOKEN_REVIEW = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct({"token": STRING, "audiences": list_of(STRING)}),
        "status": struct(
            {
                "authenticated": BOOLEAN,
                "audiences": list_of(STRING),
                "error": STRING,
                "user": _USER_INFO,
            }
        ),
    },
    description="Whose a token is.",
)
TOKEN_REQUEST = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                "audiences": list_of(STRING),
                "boundObjectRef": struct(strings("apiVersion", "kind", "name", "uid")),
                "expirationSeconds": LONG,
            }
        ),
        "status": struct({"token": STRING, "expirationTimestamp": TIME}),
    },
    description="A token of a service account, for a while.",
)
SELF_SUBJECT_REVIEW = struct(
    {"metadata": OBJECT_META, "status": struct({"userInfo": _USER_INFO})},
    description="Who the caller is.",
)

_RESOURCE_ATTRIBUTES = struct(
    {
        **strings("group", "name", "namespace", "resource", "subresource", "verb", "version"),
        "fieldSelector": ANY_OBJECT,
        "labelSelector": ANY_OBJECT,
    }
)
_ATTRIBUTES: dict[str, JSONObject] = {
    "nonResourceAttributes": struct(strings("path", "verb")),
    "resourceAttributes": _RESOURCE_ATTRIBUTES,
}
_ANSWER = struct({"allowed": BOOLEAN, "denied": BOOLEAN, **strings("evaluationError", "reason")})
SELF_SUBJECT_ACCESS_REVIEW = struct(
    {"metadata": OBJECT_META, "spec": struct(_ATTRIBUTES), "status": _ANSWER},
    description="Whether the caller may do something.",
)
SUBJECT_ACCESS_REVIEW = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                **_ATTRIBUTES,
                **strings("uid", "user"),
                "extra": map_of(list_of(STRING)),
                "groups": list_of(STRING),
            }
        ),
        "status": _ANSWER,
    },
    description="Whether somebody may do something.",
)
SELF_SUBJECT_RULES_REVIEW = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct({"namespace": STRING}),
        "status": struct(
            {
                "evaluationError": STRING,
                "incomplete": BOOLEAN,
                "nonResourceRules": list_of(POLICY_RULE),
                "resourceRules": list_of(POLICY_RULE),
            }
        ),
    },
    description="What the caller may do in a namespace.",
)

# What is served ---------------------------------------------------------------------------------


def _rbac(plural: str, kind: str, *, namespaced: bool) -> ResourceInfo:
    return ResourceInfo(
        RBAC_GROUP,
        "v1",
        plural,
        kind,
        namespaced=namespaced,
        tracks_generation=False,
        unconditional_update=True,
        create_on_update=True,
        builtin=True,
    )


def _review(group: str, plural: str, kind: str, *, namespaced: bool = False) -> ResourceInfo:
    return ResourceInfo(
        group,
        "v1",
        plural,
        kind,
        namespaced=namespaced,
        verbs=CREATE_ONLY,
        tracks_generation=False,
        builtin=True,
    )


ACCESS_RESOURCES: tuple[ResourceInfo, ...] = (
    _rbac("roles", "Role", namespaced=True),
    _rbac("rolebindings", "RoleBinding", namespaced=True),
    _rbac("clusterroles", "ClusterRole", namespaced=False),
    _rbac("clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _review(AUTHENTICATION_GROUP, "tokenreviews", "TokenReview"),
    _review(AUTHENTICATION_GROUP, "selfsubjectreviews", "SelfSubjectReview"),
    _review(AUTHORIZATION_GROUP, "subjectaccessreviews", "SubjectAccessReview"),
    _review(AUTHORIZATION_GROUP, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review(AUTHORIZATION_GROUP, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review(
        AUTHORIZATION_GROUP,
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        namespaced=True,
    ),
)
