"""The built-in kinds we read and write, each with only the fields we use."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mcm.api.meta import ApiStruct, JSONObject, LabelSelector, ObjectMeta, Resource


class SecretReference(ApiStruct, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""


class Secret(ApiStruct, frozen=True, kw_only=True):
    """``data`` values are base64 text; the repr shows none of them."""

    metadata: ObjectMeta
    type: str = ""
    data: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Secret({self.metadata.key!r}, keys={sorted(self.data)})"


class Taint(ApiStruct, frozen=True, kw_only=True):
    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None


class NodeCondition(ApiStruct, frozen=True, kw_only=True):
    """The heartbeat time is left out on purpose: it alone must wake nobody."""

    type: str
    status: str
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(ApiStruct, frozen=True, kw_only=True):
    type: str
    address: str


class AttachedVolume(ApiStruct, frozen=True, kw_only=True):
    name: str
    device_path: str = ""


class NodeSpec(ApiStruct, frozen=True, kw_only=True):
    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(ApiStruct, frozen=True, kw_only=True):
    addresses: tuple[NodeAddress, ...] = ()
    capacity: dict[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


class Node(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ClaimVolumeSource(ApiStruct, frozen=True, kw_only=True):
    claim_name: str


class EmptyDirVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """That there is one says enough."""


class Volume(ApiStruct, frozen=True, kw_only=True):
    """One pod volume; only the sources a drain asks about."""

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: JSONObject | None = None
    empty_dir: EmptyDirVolumeSource | None = None

    @property
    def is_read(self) -> bool:
        """Whether it has any of these sources: others are nobody's business."""
        return (
            self.persistent_volume_claim is not None
            or self.ephemeral is not None
            or self.empty_dir is not None
        )


class Toleration(ApiStruct, frozen=True, kw_only=True):
    """Matching lives in :mod:`mcm.api.tolerations`."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class PodSpec(ApiStruct, frozen=True, kw_only=True):
    """Most of it is what other pods say, too, and shared (:mod:`mcm.api.interning`). Affinities
    would be another 170 bytes a pod, and are left out."""

    node_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[Volume, ...] = ()
    priority: int = 0
    termination_grace_period_seconds: int | None = None


class PodCondition(ApiStruct, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""


class PodStatus(ApiStruct, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()


class Pod(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PersistentVolumeClaimSpec(ApiStruct, frozen=True, kw_only=True):
    volume_name: str = ""
    """The PersistentVolume it is bound to; empty as long as it is bound to none."""
    access_modes: tuple[str, ...] = ()


class PersistentVolumeClaim(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class PersistentVolume(ApiStruct, frozen=True, kw_only=True):
    """``spec`` stays raw: which volume it means may be the provider's to say."""

    metadata: ObjectMeta
    spec: JSONObject = {}


class VolumeAttachmentSource(ApiStruct, frozen=True, kw_only=True):
    """What is attached without being a PersistentVolume (``inlineVolumeSpec``) is not read: it has
    no name here."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(ApiStruct, frozen=True, kw_only=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeError(ApiStruct, frozen=True, kw_only=True):
    """The last failure; its time is left out, so that the same one once more wakes nobody."""

    message: str = ""


class VolumeAttachmentStatus(ApiStruct, frozen=True, kw_only=True):
    attached: bool = False
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


class PodDisruptionBudgetSpec(ApiStruct, frozen=True, kw_only=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(ApiStruct, frozen=True, kw_only=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class LeaseSpec(ApiStruct, frozen=True, kw_only=True):
    """Times are MicroTime: RFC 3339 in UTC with exactly six fraction digits, kept as text."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


SECRETS = Resource("", "v1", "secrets", "Secret", Secret)
NODES = Resource("", "v1", "nodes", "Node", Node, namespaced=False)
PODS = Resource("", "v1", "pods", "Pod", Pod)
PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim
)
PERSISTENT_VOLUMES = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", PersistentVolume, namespaced=False
)
VOLUME_ATTACHMENTS = Resource(
    "storage.k8s.io",
    "v1",
    "volumeattachments",
    "VolumeAttachment",
    VolumeAttachment,
    namespaced=False,
)
POD_DISRUPTION_BUDGETS = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget
)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)
