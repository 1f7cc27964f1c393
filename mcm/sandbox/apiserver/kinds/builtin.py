"""The built-in kinds the server knows, with the write rules of their strategies upstream.

Schemas of core objects are not checked: clients under test are trusted to send what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds.access import ACCESS_RESOURCES
from mcm.sandbox.apiserver.kinds.admission import ADMISSION_RESOURCES
from mcm.sandbox.apiserver.kinds.networking import NETWORKING_RESOURCES
from mcm.sandbox.apiserver.registry import ResourceInfo, ScalePaths

NAMESPACES = "namespaces"
PODS = "pods"
NODES = "nodes"
SECRETS = "secrets"
EVENTS = "events"
LEASES = "leases.coordination.k8s.io"
POD_DISRUPTION_BUDGETS = "poddisruptionbudgets.policy"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

PERMANENT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

_STATUS = frozenset({"status"})
_WORKLOAD = frozenset({"status", "scale"})
_ALL = ("all",)
_EMPTY: JSONObject = {}


def _selectors(*paths: str) -> Mapping[str, str]:
    return MappingProxyType({path: path for path in paths})


_EVENT_SELECTORS = MappingProxyType(
    {
        **{
            f"involvedObject.{name}": f"involvedObject.{name}"
            for name in (
                "kind",
                "namespace",
                "name",
                "uid",
                "apiVersion",
                "resourceVersion",
                "fieldPath",
            )
        },
        "reason": "reason",
        "reportingComponent": "reportingComponent",
        "source": "source.component",
        "type": "type",
    }
)
# Through events.k8s.io the same fields go by the new names; objects are kept in the old form.
_REGARDING_SELECTORS = MappingProxyType(
    {
        name.replace("involvedObject", "regarding").replace(
            "reportingComponent", "reportingController"
        ): path
        for name, path in _EVENT_SELECTORS.items()
    }
)

_POD_SELECTORS = _selectors(
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_SELECTOR_SCALE = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")

_CORE = (
    ResourceInfo(
        "",
        "v1",
        "namespaces",
        "Namespace",
        namespaced=False,
        short_names=("ns",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        subresources=frozenset({"status", "finalize"}),
        field_selectors=_selectors("status.phase"),
        initial_status={"phase": "Active"},
        tracks_generation=False,
        unconditional_update=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "nodes",
        "Node",
        namespaced=False,
        short_names=("no",),
        subresources=_STATUS,
        field_selectors=_selectors("spec.unschedulable"),
        tracks_generation=False,
        unconditional_update=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "pods",
        "Pod",
        short_names=("po",),
        categories=_ALL,
        subresources=frozenset({"status", "eviction", "binding", "log"}),
        field_selectors=_POD_SELECTORS,
        initial_status={"phase": "Pending"},
        unconditional_update=True,
        returns_deleted=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "secrets",
        "Secret",
        field_selectors=_selectors("type"),
        tracks_generation=False,
        unconditional_update=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "configmaps",
        "ConfigMap",
        short_names=("cm",),
        tracks_generation=False,
        unconditional_update=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "events",
        "Event",
        short_names=("ev",),
        field_selectors=_EVENT_SELECTORS,
        tracks_generation=False,
        unconditional_update=True,
        create_on_update=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "serviceaccounts",
        "ServiceAccount",
        short_names=("sa",),
        subresources=frozenset({"token"}),
        tracks_generation=False,
        unconditional_update=True,
        returns_deleted=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=_STATUS,
        initial_status={"phase": "Pending"},
        tracks_generation=False,
        unconditional_update=True,
        returns_deleted=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        namespaced=False,
        short_names=("pv",),
        subresources=_STATUS,
        initial_status={"phase": "Pending"},
        tracks_generation=False,
        unconditional_update=True,
        returns_deleted=True,
        builtin=True,
    ),
    ResourceInfo(
        "",
        "v1",
        "services",
        "Service",
        short_names=("svc",),
        categories=_ALL,
        subresources=_STATUS,
        field_selectors=_selectors("spec.clusterIP", "spec.type"),
        initial_status={"loadBalancer": {}},
        tracks_generation=False,
        unconditional_update=True,
        returns_deleted=True,
        builtin=True,
    ),
)


def _workload(
    plural: str,
    kind: str,
    short_name: str,
    *,
    scales: bool = True,
    initial_status: JSONObject = _EMPTY,
    field_selectors: Mapping[str, str] | None = None,
) -> ResourceInfo:
    return ResourceInfo(
        "apps",
        "v1",
        plural,
        kind,
        short_names=(short_name,),
        categories=_ALL,
        subresources=_WORKLOAD if scales else _STATUS,
        scale=_SELECTOR_SCALE if scales else None,
        field_selectors=field_selectors or _selectors(),
        initial_status=initial_status,
        unconditional_update=True,
        builtin=True,
    )


_WORKLOADS = (
    _workload(
        "replicasets",
        "ReplicaSet",
        "rs",
        initial_status={"replicas": 0},
        field_selectors=_selectors("status.replicas"),
    ),
    _workload("deployments", "Deployment", "deploy"),
    _workload("statefulsets", "StatefulSet", "sts"),
    _workload("daemonsets", "DaemonSet", "ds", scales=False),
    ResourceInfo(
        "apps",
        "v1",
        "controllerrevisions",
        "ControllerRevision",
        tracks_generation=False,
        unconditional_update=True,
        builtin=True,
    ),
)

_STORAGE = (
    ResourceInfo(
        "storage.k8s.io",
        "v1",
        "volumeattachments",
        "VolumeAttachment",
        namespaced=False,
        subresources=_STATUS,
        initial_status={"attached": False},
        tracks_generation=False,
        returns_deleted=True,
        builtin=True,
    ),
    ResourceInfo(
        "storage.k8s.io",
        "v1",
        "storageclasses",
        "StorageClass",
        namespaced=False,
        short_names=("sc",),
        tracks_generation=False,
        unconditional_update=True,
        returns_deleted=True,
        builtin=True,
    ),
    ResourceInfo(
        "storage.k8s.io",
        "v1",
        "csinodes",
        "CSINode",
        namespaced=False,
        tracks_generation=False,
        returns_deleted=True,
        builtin=True,
    ),
)

_POLICY = (
    ResourceInfo(
        "coordination.k8s.io",
        "v1",
        "leases",
        "Lease",
        tracks_generation=False,
        create_on_update=True,
        builtin=True,
    ),
    ResourceInfo(
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        short_names=("pdb",),
        subresources=_STATUS,
        initial_status={
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "disruptionsAllowed": 0,
            "expectedPods": 0,
        },
        builtin=True,
    ),
    ResourceInfo(
        "scheduling.k8s.io",
        "v1",
        "priorityclasses",
        "PriorityClass",
        namespaced=False,
        short_names=("pc",),
        unconditional_update=True,
        builtin=True,
    ),
    ResourceInfo(
        "events.k8s.io",
        "v1",
        "events",
        "Event",
        short_names=("ev",),
        field_selectors=_REGARDING_SELECTORS,
        tracks_generation=False,
        unconditional_update=True,
        create_on_update=True,
        storage_group="",
        storage_version="v1",
        builtin=True,
    ),
    ResourceInfo(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=_STATUS,
        initial_status=_EMPTY,
        builtin=True,
    ),
)


BUILTIN_RESOURCES: tuple[ResourceInfo, ...] = (
    *_CORE,
    *_WORKLOADS,
    *_STORAGE,
    *_POLICY,
    *ACCESS_RESOURCES,
    *NETWORKING_RESOURCES,
    *ADMISSION_RESOURCES,
)
