"""The kinds that the cluster's own controllers read, with the fields they use of them.

Pods and Nodes have more here than :mod:`mcm.api.core` has: schedulers look at what drains do not.
Pod templates stay raw, because they are only copied.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from mcm.api import core
from mcm.api.core import POD_DISRUPTION_BUDGETS
from mcm.api.meta import ApiStruct, JSONObject, LabelSelector, ObjectMeta, Resource
from mcm.providers.simulated import volumes

__all__ = [
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "NODES",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "PODS",
    "POD_DISRUPTION_BUDGETS",
    "REPLICA_SETS",
    "STORAGE_CLASSES",
    "VOLUME_ATTACHMENTS",
]

Quantity = str | int | float

# Nodes and pods ---------------------------------------------------------------------------------


class NodeStatus(core.NodeStatus, frozen=True, kw_only=True):
    allocatable: dict[str, Quantity] = {}


class Node(core.Node, frozen=True, kw_only=True):
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class ResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    requests: dict[str, Quantity] = {}


class Container(ApiStruct, frozen=True, kw_only=True):
    resources: ResourceRequirements = ResourceRequirements()


class PodSpec(core.PodSpec, frozen=True, kw_only=True):
    containers: tuple[Container, ...] = ()
    node_selector: dict[str, str] = {}
    scheduler_name: str = ""


class PodCondition(core.PodCondition, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class PodStatus(core.PodStatus, frozen=True, kw_only=True):
    conditions: tuple[PodCondition, ...] = ()


class Pod(core.Pod, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def active(self) -> bool:
        """Whether it counts for whoever owns it."""
        return not (self.finished or self.terminating)

    @property
    def ready(self) -> bool:
        return self.ready_since is not None

    @property
    def ready_since(self) -> datetime | None:
        for condition in self.status.conditions:
            if condition.type == "Ready" and condition.status == "True":
                return condition.last_transition_time or self.metadata.creation_timestamp
        return None


# Workloads --------------------------------------------------------------------------------------


class ReplicaSetSpec(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template: JSONObject = {}


class ReplicaSetStatus(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class ReplicaSet(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdate(ApiStruct, frozen=True, kw_only=True):
    """Numbers of pods, or percentages of ``replicas``."""

    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"


class DeploymentStrategy(ApiStruct, frozen=True, kw_only=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 1
    min_ready_seconds: int = 0
    paused: bool = False
    revision_history_limit: int = 10
    progress_deadline_seconds: int = 600
    selector: LabelSelector | None = None
    strategy: DeploymentStrategy = DeploymentStrategy()
    template: JSONObject = {}


class DeploymentCondition(ApiStruct, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None


class DeploymentStatus(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[DeploymentCondition, ...] = ()


class Deployment(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class DaemonSetUpdateStrategy(ApiStruct, frozen=True, kw_only=True):
    type: str = "RollingUpdate"


class DaemonSetSpec(ApiStruct, frozen=True, kw_only=True):
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    selector: LabelSelector | None = None
    template: JSONObject = {}


class DaemonSetStatus(ApiStruct, frozen=True, kw_only=True):
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    number_misscheduled: int = 0
    observed_generation: int = 0


class DaemonSet(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


NODES = Resource("", "v1", "nodes", "Node", Node, namespaced=False)
PODS = Resource("", "v1", "pods", "Pod", Pod)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", ReplicaSet)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Deployment)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", DaemonSet)

# Storage ----------------------------------------------------------------------------------------


class NodeSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class VolumeNodeAffinity(ApiStruct, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(volumes.PersistentVolumeSpec, frozen=True, kw_only=True):
    capacity: dict[str, Quantity] = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    persistent_volume_reclaim_policy: str = "Retain"
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(ApiStruct, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolume(volumes.PersistentVolume, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def exclusive(self) -> bool:
        """Whether one Node at a time may have it."""
        return not {"ReadWriteMany", "ReadOnlyMany"} & {*self.spec.access_modes}


class PersistentVolumeClaimSpec(volumes.PersistentVolumeClaimSpec, frozen=True, kw_only=True):
    """No ``storage_class_name`` asks for the default class, an empty one for none."""

    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"


class PersistentVolumeClaimStatus(ApiStruct, frozen=True, kw_only=True):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = {}


class PersistentVolumeClaim(volumes.PersistentVolumeClaim, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologyLabel(ApiStruct, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(ApiStruct, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologyLabel, ...] = ()


class StorageClass(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeAttachment(core.VolumeAttachment, frozen=True, kw_only=True):
    @property
    def volume_name(self) -> str:
        return self.spec.source.persistent_volume_name

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None


PERSISTENT_VOLUMES = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", PersistentVolume, namespaced=False
)
PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim
)
STORAGE_CLASSES = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", StorageClass, namespaced=False
)
VOLUME_ATTACHMENTS = Resource(
    "storage.k8s.io",
    "v1",
    "volumeattachments",
    "VolumeAttachment",
    VolumeAttachment,
    namespaced=False,
)

# Pod templates ----------------------------------------------------------------------------------


class _TemplateMeta(ApiStruct, frozen=True, kw_only=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(ApiStruct, frozen=True, kw_only=True):
    """A template's labels and annotations, read; its spec, as sent."""

    metadata: _TemplateMeta = _TemplateMeta()
    spec: JSONObject = {}

    @classmethod
    def read(cls, raw: JSONObject) -> PodTemplate:
        return msgspec.convert(raw, cls)
