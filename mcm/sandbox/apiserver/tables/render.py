"""From objects to a ``meta.k8s.io/v1`` Table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.tables import access, cluster, networking, workloads
from mcm.sandbox.apiserver.tables.columns import AGE, NAME, Column, View, custom_columns
from mcm.sandbox.apiserver.tables.pods import POD_COLUMNS

_META_VERSION = "meta.k8s.io/v1"
_COLUMNS: Mapping[tuple[str, str], tuple[Column, ...]] = MappingProxyType(
    {
        ("", "ConfigMap"): cluster.CONFIG_MAP_COLUMNS,
        ("", "Event"): cluster.EVENT_COLUMNS,
        ("", "Namespace"): cluster.NAMESPACE_COLUMNS,
        ("", "Node"): cluster.NODE_COLUMNS,
        ("", "PersistentVolume"): cluster.VOLUME_COLUMNS,
        ("", "PersistentVolumeClaim"): cluster.CLAIM_COLUMNS,
        ("", "Pod"): POD_COLUMNS,
        ("", "Secret"): cluster.SECRET_COLUMNS,
        ("", "Service"): networking.SERVICE_COLUMNS,
        ("", "ServiceAccount"): cluster.SERVICE_ACCOUNT_COLUMNS,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): access.WEBHOOK_COLUMNS,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): access.WEBHOOK_COLUMNS,
        ("apiextensions.k8s.io", "CustomResourceDefinition"): cluster.DEFINITION_COLUMNS,
        ("apps", "ControllerRevision"): workloads.CONTROLLER_REVISION_COLUMNS,
        ("apps", "DaemonSet"): workloads.DAEMON_SET_COLUMNS,
        ("apps", "Deployment"): workloads.DEPLOYMENT_COLUMNS,
        ("apps", "ReplicaSet"): workloads.REPLICA_SET_COLUMNS,
        ("apps", "StatefulSet"): workloads.STATEFUL_SET_COLUMNS,
        ("coordination.k8s.io", "Lease"): cluster.LEASE_COLUMNS,
        ("events.k8s.io", "Event"): cluster.EVENT_COLUMNS,
        ("networking.k8s.io", "NetworkPolicy"): networking.NETWORK_POLICY_COLUMNS,
        ("policy", "PodDisruptionBudget"): cluster.BUDGET_COLUMNS,
        ("rbac.authorization.k8s.io", "ClusterRole"): access.ROLE_COLUMNS,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"): access.BINDING_COLUMNS,
        ("rbac.authorization.k8s.io", "Role"): access.ROLE_COLUMNS,
        ("rbac.authorization.k8s.io", "RoleBinding"): access.BINDING_COLUMNS,
        ("scheduling.k8s.io", "PriorityClass"): cluster.PRIORITY_CLASS_COLUMNS,
        ("storage.k8s.io", "CSINode"): cluster.CSI_NODE_COLUMNS,
        ("storage.k8s.io", "StorageClass"): cluster.STORAGE_CLASS_COLUMNS,
        ("storage.k8s.io", "VolumeAttachment"): cluster.ATTACHMENT_COLUMNS,
    }
)


def render_table(
    info: ResourceInfo,
    objects: Sequence[JSONObject],
    *,
    now: datetime,
    include_object: str = "Metadata",
    list_meta: JSONObject | None = None,
) -> JSONObject:
    """Return the objects (in the version of ``info``) as a Table, a row each.

    ``now`` is what ages are counted from. ``include_object`` says what a row carries besides its
    cells: ``Metadata`` alone, the whole ``Object``, or ``None``. ``list_meta`` (resourceVersion,
    continue …) becomes the Table's own metadata.
    """
    columns = columns_of(info)
    return {
        "kind": "Table",
        "apiVersion": _META_VERSION,
        "metadata": dict(list_meta or {}),
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(columns, View(obj, now), include_object) for obj in objects],
    }


def columns_of(info: ResourceInfo) -> tuple[Column, ...]:
    """Return a resource's columns: its definition's, ours for a built-in kind, or name and age."""
    if info.printer_columns:
        return custom_columns(info.printer_columns)
    if info.builtin:
        return _COLUMNS.get((info.group, info.kind), (NAME, AGE))
    return (NAME, AGE)


def _row(columns: Sequence[Column], view: View, include_object: str) -> JSONObject:
    row: JSONObject = {"cells": [column.cell(view) for column in columns]}
    if include_object == "Object":
        row["object"] = view.obj
    elif include_object == "Metadata":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": _META_VERSION,
            "metadata": view.obj.get("metadata", {}),
        }
    return row
