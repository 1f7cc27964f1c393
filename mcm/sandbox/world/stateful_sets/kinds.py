"""StatefulSets and the revisions of their templates, with the fields the controller uses."""

from __future__ import annotations

from mcm.api.meta import ApiStruct, JSONObject, LabelSelector, ObjectMeta, Resource

__all__ = ["CONTROLLER_REVISIONS", "STATEFUL_SETS"]


class Ordinals(ApiStruct, frozen=True, kw_only=True):
    start: int = 0


class Partition(ApiStruct, frozen=True, kw_only=True):
    """How many pods, from the lowest number on, keep the template they have."""

    partition: int = 0


class StatefulSetUpdateStrategy(ApiStruct, frozen=True, kw_only=True):
    type: str = "RollingUpdate"
    rolling_update: Partition = Partition()


class StatefulSetSpec(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 1
    min_ready_seconds: int = 0
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    ordinals: Ordinals = Ordinals()
    revision_history_limit: int = 10
    selector: LabelSelector | None = None
    template: JSONObject = {}
    volume_claim_templates: tuple[JSONObject, ...] = ()


class StatefulSetStatus(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    observed_generation: int = 0


class StatefulSet(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class ControllerRevision(ApiStruct, frozen=True, kw_only=True):
    """``data`` is a patch that brings the set back to this template."""

    metadata: ObjectMeta
    revision: int = 0
    data: JSONObject = {}


STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", StatefulSet)
CONTROLLER_REVISIONS = Resource(
    "apps", "v1", "controllerrevisions", "ControllerRevision", ControllerRevision
)
