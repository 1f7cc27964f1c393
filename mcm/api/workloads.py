"""What owns pods, each with only the fields we use: all of them are somebody else's."""

from __future__ import annotations

from mcm.api.meta import ApiStruct, ObjectMeta, Resource


class RollingUpdate(ApiStruct, frozen=True, kw_only=True):
    """A number, or a share as text; None is Kubernetes' own default, a quarter."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategy(ApiStruct, frozen=True, kw_only=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 1
    paused: bool = False
    strategy: DeploymentStrategy = DeploymentStrategy()


class Deployment(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: DeploymentSpec = DeploymentSpec()


class ReplicaSet(ApiStruct, frozen=True, kw_only=True):
    """Only whose it is."""

    metadata: ObjectMeta


class ScaleTarget(ApiStruct, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(ApiStruct, frozen=True, kw_only=True):
    scale_target_ref: ScaleTarget = ScaleTarget()


class HorizontalPodAutoscaler(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()


DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Deployment)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", ReplicaSet)
HORIZONTAL_POD_AUTOSCALERS = Resource(
    "autoscaling",
    "v2",
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
    HorizontalPodAutoscaler,
)
