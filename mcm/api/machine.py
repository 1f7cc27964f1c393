"""The ``machine.sapcloud.io/v1alpha1`` kinds, wire-compatible with the Go original (spec: APIs).

Durations are Go duration strings (:mod:`mcm.api.durations`), timestamps RFC 3339 in seconds.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from mcm.api.core import NodeAddress, NodeCondition, SecretReference, Taint
from mcm.api.meta import ApiStruct, JSONObject, LabelSelector, ObjectMeta, Resource

GROUP = "machine.sapcloud.io"
VERSION = "v1alpha1"


class MachinePhase(StrEnum):
    """``status.currentStatus.phase``; free text on the wire: unknown ones are no error."""

    PENDING = "Pending"
    AVAILABLE = "Available"
    RUNNING = "Running"
    TERMINATING = "Terminating"
    UNKNOWN = "Unknown"
    FAILED = "Failed"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    IN_PLACE_UPDATING = "InPlaceUpdating"
    IN_PLACE_UPDATE_SUCCESSFUL = "InPlaceUpdateSuccessful"
    IN_PLACE_UPDATE_FAILED = "InPlaceUpdateFailed"


class OperationState(StrEnum):
    PROCESSING = "Processing"
    FAILED = "Failed"
    SUCCESSFUL = "Successful"


class OperationType(StrEnum):
    CREATE = "Create"
    UPDATE = "Update"
    IN_PLACE_UPDATE = "InPlaceUpdate"
    DRAIN_NODE = "DrainNode"
    HEALTH_CHECK = "HealthCheck"
    DELETE = "Delete"


class ClassSpec(ApiStruct, frozen=True, kw_only=True):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class TemplateMeta(ApiStruct, frozen=True, kw_only=True):
    """The part of a node template's metadata that reaches the Node."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class TemplateNodeSpec(ApiStruct, frozen=True, kw_only=True):
    taints: tuple[Taint, ...] | None = None


class NodeTemplateSpec(ApiStruct, frozen=True, kw_only=True):
    metadata: TemplateMeta | None = None
    spec: TemplateNodeSpec | None = None


class MachineSpec(ApiStruct, frozen=True, kw_only=True):
    class_: ClassSpec = msgspec.field(name="class", default=ClassSpec())
    provider_id: str = msgspec.field(name="providerID", default="")
    node_template: NodeTemplateSpec | None = None
    drain_timeout: str | None = None
    health_timeout: str | None = None
    creation_timeout: str | None = None
    in_place_update_timeout: str | None = None
    machine_preserve_timeout: str | None = None
    disable_health_timeout: bool | None = None
    max_evict_retries: int | None = None
    node_conditions: str | None = None


class LastOperation(ApiStruct, frozen=True, kw_only=True):
    description: str = ""
    error_code: str = ""
    last_update_time: datetime | None = None
    state: str = ""
    type: str = ""


class CurrentStatus(ApiStruct, frozen=True, kw_only=True):
    phase: str = ""
    timeout_active: bool = False
    last_update_time: datetime | None = None
    preserve_expiry_time: datetime | None = None


class MachineStatus(ApiStruct, frozen=True, kw_only=True):
    addresses: tuple[NodeAddress, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    last_operation: LastOperation = LastOperation()
    current_status: CurrentStatus = CurrentStatus()
    last_known_state: str = ""


class Machine(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()

    @property
    def phase(self) -> str:
        return self.status.current_status.phase

    @property
    def node_name(self) -> str:
        """The Node's name, from the label ``node``; empty before it is known."""
        return self.metadata.labels.get("node", "")


class MachineClassNodeTemplate(ApiStruct, frozen=True, kw_only=True):
    capacity: dict[str, str | int] = {}
    virtual_capacity: dict[str, str | int] = {}
    instance_type: str = ""
    region: str = ""
    zone: str = ""
    architecture: str | None = None


class MachineClass(ApiStruct, frozen=True, kw_only=True):
    """Fields are at the top level, with neither spec nor status; ``provider_spec`` is opaque."""

    metadata: ObjectMeta
    node_template: MachineClassNodeTemplate | None = None
    credentials_secret_ref: SecretReference | None = None
    secret_ref: SecretReference | None = None
    provider_spec: JSONObject = {}
    provider: str = ""


class MachineTemplate(ApiStruct, frozen=True, kw_only=True):
    """``spec.template``, kept as sent: what we do not know must reach the machines all the same.

    Typed views of the parts that decide something: :mod:`mcm.api.templates`.
    """

    metadata: JSONObject = {}
    spec: JSONObject = {}


class MachineSummary(ApiStruct, frozen=True, kw_only=True):
    name: str = ""
    provider_id: str = msgspec.field(name="providerID", default="")
    last_operation: LastOperation = LastOperation()
    owner_ref: str = ""


class MachineSetCondition(ApiStruct, frozen=True, kw_only=True):
    type: str
    status: str
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class MachineSetSpec(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 0
    selector: LabelSelector | None = None
    machine_class: ClassSpec | None = None
    template: MachineTemplate = MachineTemplate()
    min_ready_seconds: int = 0
    auto_preserve_failed_machine_max: int = 0


class MachineSetStatus(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    preserved_failed_replicas: int = 0
    auto_preserve_failed_machine_count: int = 0
    observed_generation: int = 0
    # The wire name differs from every other kind's, and must stay so.
    conditions: tuple[MachineSetCondition, ...] = msgspec.field(
        name="machineSetCondition", default=()
    )
    last_operation: LastOperation = LastOperation()
    failed_machines: tuple[MachineSummary, ...] | None = None


class MachineSet(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: MachineSetSpec = MachineSetSpec()
    status: MachineSetStatus = MachineSetStatus()


class RollingUpdate(ApiStruct, frozen=True, kw_only=True):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class InPlaceUpdate(ApiStruct, frozen=True, kw_only=True):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None
    orchestration_type: str = ""


class DeploymentStrategy(ApiStruct, frozen=True, kw_only=True):
    type: str = ""
    rolling_update: RollingUpdate | None = None
    in_place_update: InPlaceUpdate | None = None


class RollbackConfig(ApiStruct, frozen=True, kw_only=True):
    revision: int = 0


class MachineDeploymentCondition(ApiStruct, frozen=True, kw_only=True):
    type: str
    status: str
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class MachineDeploymentSpec(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 0
    selector: LabelSelector | None = None
    template: MachineTemplate = MachineTemplate()
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    paused: bool = False
    rollback_to: RollbackConfig | None = None
    progress_deadline_seconds: int | None = None
    auto_preserve_failed_machine_max: int = 0


class MachineDeploymentStatus(ApiStruct, frozen=True, kw_only=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    preserved_failed_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[MachineDeploymentCondition, ...] = ()
    collision_count: int | None = None
    failed_machines: tuple[MachineSummary, ...] | None = None


class MachineDeployment(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: MachineDeploymentSpec = MachineDeploymentSpec()
    status: MachineDeploymentStatus = MachineDeploymentStatus()


MACHINES = Resource(GROUP, VERSION, "machines", "Machine", Machine, in_part=True)
MACHINE_CLASSES = Resource(
    GROUP, VERSION, "machineclasses", "MachineClass", MachineClass, in_part=True
)
MACHINE_SETS = Resource(GROUP, VERSION, "machinesets", "MachineSet", MachineSet, in_part=True)
MACHINE_DEPLOYMENTS = Resource(
    GROUP, VERSION, "machinedeployments", "MachineDeployment", MachineDeployment, in_part=True
)
