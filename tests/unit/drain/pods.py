"""Pods and budgets to drain, in as few words as a test needs."""

from __future__ import annotations

from datetime import UTC, datetime

from mcm.api.core import (
    ClaimVolumeSource,
    EmptyDirVolumeSource,
    NodeCondition,
    Pod,
    PodCondition,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PodSpec,
    PodStatus,
    Toleration,
    Volume,
)
from mcm.api.meta import JSONObject, LabelSelector, ObjectMeta, OwnerReference

EVERYTHING = LabelSelector()
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(
    name: str,
    *,
    namespace: str = "default",
    claims: tuple[str, ...] = (),
    ephemeral: tuple[str, ...] = (),
    priority: int = 0,
    owner: str = "ReplicaSet",
    mirror: bool = False,
    phase: str = "Running",
    deleted: datetime | None = None,
    created: datetime | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    tolerations: tuple[Toleration, ...] = (),
    empty_dir: bool = False,
    uid: str = "",
    ready: bool = True,
) -> Pod:
    template: JSONObject = {"volumeClaimTemplate": {}}
    volumes = (
        *(Volume(name=c, persistent_volume_claim=ClaimVolumeSource(claim_name=c)) for c in claims),
        *(Volume(name=e, ephemeral=template) for e in ephemeral),
        *((Volume(name="scratch", empty_dir=EmptyDirVolumeSource()),) if empty_dir else ()),
    )
    reference = OwnerReference(
        api_version="apps/v1", kind=owner, name="owner", uid="owner-uid", controller=True
    )
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid or f"uid-{name}",
            labels=labels or {},
            annotations={
                **(annotations or {}),
                **({"kubernetes.io/config.mirror": "x"} if mirror else {}),
            },
            owner_references=(reference,) if owner else (),
            creation_timestamp=created,
            deletion_timestamp=deleted,
        ),
        spec=PodSpec(node_name="node", volumes=volumes, priority=priority, tolerations=tolerations),
        status=PodStatus(
            phase=phase,
            conditions=(PodCondition(type="Ready", status="True" if ready else "False"),),
        ),
    )


def budget(
    name: str,
    *,
    namespace: str = "default",
    selector: LabelSelector | None = EVERYTHING,
    allowed: int = 0,
    healthy: int = 1,
    expected: int = 1,
    generation: int = 1,
    observed: int = 1,
    disrupted: dict[str, str] | None = None,
    version: str = "1",
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(
            name=name, namespace=namespace, generation=generation, resource_version=version
        ),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(
            observed_generation=observed,
            disruptions_allowed=allowed,
            current_healthy=healthy,
            desired_healthy=healthy,
            expected_pods=expected,
            disrupted_pods=disrupted or {},
        ),
    )


def condition(type_: str, status: str, since: datetime | None = NOW) -> NodeCondition:
    return NodeCondition(type=type_, status=status, last_transition_time=since)
