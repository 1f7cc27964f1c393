"""What the sandbox knows of the fields of built-in kinds.

The schemas here name the fields of each kind and how lists and objects merge (list types and keys,
patch strategies, after the Go types of Kubernetes 1.32); strategic merge patches, server-side
apply and ``kubectl explain`` read them. They check nothing: fields not listed pass.

:func:`builtin_schema` answers for a group and kind, None for kinds unknown here. Everything is
built once at import and must not be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds.access import (
    AUTHENTICATION_GROUP,
    AUTHORIZATION_GROUP,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    RBAC_GROUP,
    ROLE,
    ROLE_BINDING,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    TOKEN_REVIEW,
)
from mcm.sandbox.apiserver.kinds.admission import (
    ADMISSION_GROUP,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
)
from mcm.sandbox.apiserver.kinds.cluster import (
    CONFIG_MAP,
    CSI_NODE,
    EVENT,
    LEASE,
    NAMESPACE,
    NEW_EVENT,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_DISRUPTION_BUDGET,
    SECRET,
    SERVICE_ACCOUNT,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)
from mcm.sandbox.apiserver.kinds.meta import OBJECT_META
from mcm.sandbox.apiserver.kinds.networking import NETWORK_POLICY, NETWORKING_GROUP, SERVICE
from mcm.sandbox.apiserver.kinds.pods import POD
from mcm.sandbox.apiserver.kinds.workloads import (
    CONTROLLER_REVISION,
    CUSTOM_RESOURCE_DEFINITION,
    DAEMON_SET,
    DEPLOYMENT,
    PRIORITY_CLASS,
    REPLICA_SET,
    STATEFUL_SET,
)

__all__ = ["OBJECT_META", "builtin_schema"]

_SCHEMAS: Mapping[tuple[str, str], JSONObject] = MappingProxyType(
    {
        ("", "ConfigMap"): CONFIG_MAP,
        ("", "Event"): EVENT,
        ("", "Namespace"): NAMESPACE,
        ("", "Node"): NODE,
        ("", "PersistentVolume"): PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim"): PERSISTENT_VOLUME_CLAIM,
        ("", "Pod"): POD,
        ("", "Secret"): SECRET,
        ("", "Service"): SERVICE,
        ("", "ServiceAccount"): SERVICE_ACCOUNT,
        (ADMISSION_GROUP, "MutatingWebhookConfiguration"): MUTATING_WEBHOOK_CONFIGURATION,
        (ADMISSION_GROUP, "ValidatingWebhookConfiguration"): VALIDATING_WEBHOOK_CONFIGURATION,
        ("apiextensions.k8s.io", "CustomResourceDefinition"): CUSTOM_RESOURCE_DEFINITION,
        ("apps", "ControllerRevision"): CONTROLLER_REVISION,
        ("apps", "DaemonSet"): DAEMON_SET,
        ("apps", "Deployment"): DEPLOYMENT,
        ("apps", "ReplicaSet"): REPLICA_SET,
        ("apps", "StatefulSet"): STATEFUL_SET,
        (AUTHENTICATION_GROUP, "SelfSubjectReview"): SELF_SUBJECT_REVIEW,
        (AUTHENTICATION_GROUP, "TokenReview"): TOKEN_REVIEW,
        (AUTHORIZATION_GROUP, "LocalSubjectAccessReview"): SUBJECT_ACCESS_REVIEW,
        (AUTHORIZATION_GROUP, "SelfSubjectAccessReview"): SELF_SUBJECT_ACCESS_REVIEW,
        (AUTHORIZATION_GROUP, "SelfSubjectRulesReview"): SELF_SUBJECT_RULES_REVIEW,
        (AUTHORIZATION_GROUP, "SubjectAccessReview"): SUBJECT_ACCESS_REVIEW,
        ("coordination.k8s.io", "Lease"): LEASE,
        ("events.k8s.io", "Event"): NEW_EVENT,
        (NETWORKING_GROUP, "NetworkPolicy"): NETWORK_POLICY,
        ("policy", "PodDisruptionBudget"): POD_DISRUPTION_BUDGET,
        (RBAC_GROUP, "ClusterRole"): CLUSTER_ROLE,
        (RBAC_GROUP, "ClusterRoleBinding"): CLUSTER_ROLE_BINDING,
        (RBAC_GROUP, "Role"): ROLE,
        (RBAC_GROUP, "RoleBinding"): ROLE_BINDING,
        ("scheduling.k8s.io", "PriorityClass"): PRIORITY_CLASS,
        ("storage.k8s.io", "CSINode"): CSI_NODE,
        ("storage.k8s.io", "StorageClass"): STORAGE_CLASS,
        ("storage.k8s.io", "VolumeAttachment"): VOLUME_ATTACHMENT,
    }
)


def builtin_schema(group: str, kind: str) -> JSONObject | None:
    """Return the schema of a built-in kind; its versions do not differ in what it tells."""
    return _SCHEMAS.get((group, kind))
