"""Deployments and sets for tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mcm.api.machine import (
    DeploymentStrategy,
    MachineDeployment,
    MachineDeploymentCondition,
    MachineDeploymentSpec,
    MachineDeploymentStatus,
    MachineSet,
    MachineSetSpec,
    MachineSetStatus,
    MachineTemplate,
    RollbackConfig,
)
from mcm.api.meta import JSONObject, LabelSelector, ObjectMeta, OwnerReference

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LABELS = {"name": "pool"}
OWNER = OwnerReference(
    api_version="machine.sapcloud.io/v1alpha1",
    kind="MachineDeployment",
    name="pool",
    uid="pool-uid",
    controller=True,
    block_owner_deletion=True,
)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def template(
    class_name: str = "class-a",
    *,
    metadata: JSONObject | None = None,
    spec: JSONObject | None = None,
) -> MachineTemplate:
    return MachineTemplate(
        metadata={"labels": LABELS, **(metadata or {})},
        spec={"class": {"kind": "MachineClass", "name": class_name}, **(spec or {})},
    )


def deployment(
    replicas: int = 3,
    *,
    of: MachineTemplate | None = None,
    annotations: dict[str, str] | None = None,
    strategy: DeploymentStrategy | None = None,
    status: MachineDeploymentStatus | None = None,
    rollback_to: int | None = None,
    paused: bool = False,
    progress_deadline_seconds: int | None = None,
) -> MachineDeployment:
    return MachineDeployment(
        metadata=ObjectMeta(
            name="pool",
            namespace="ns",
            uid="pool-uid",
            resource_version="1",
            generation=1,
            annotations=annotations or {},
        ),
        spec=MachineDeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=LABELS),
            template=of or template(),
            strategy=strategy or DeploymentStrategy(),
            rollback_to=None if rollback_to is None else RollbackConfig(revision=rollback_to),
            paused=paused,
            progress_deadline_seconds=progress_deadline_seconds,
        ),
        status=status or MachineDeploymentStatus(),
    )


def owned_set(
    name: str = "set",
    replicas: int = 3,
    *,
    of: MachineTemplate | None = None,
    annotations: dict[str, str] | None = None,
    age: float = 0.0,
    deleted: bool = False,
    generation: int = 1,
    status: MachineSetStatus | None = None,
    selector: dict[str, str] | None = None,
) -> MachineSet:
    return MachineSet(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"{name}-uid",
            resource_version="1",
            generation=generation,
            labels=LABELS,
            annotations=annotations or {},
            creation_timestamp=ago(age),
            deletion_timestamp=NOW if deleted else None,
            owner_references=(OWNER,),
        ),
        spec=MachineSetSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=LABELS if selector is None else selector),
            template=of or template(),
        ),
        status=status or MachineSetStatus(),
    )


def progressing(
    reason: str, *, status: str = "True", updated: float = 60, moved: float = 600
) -> MachineDeploymentCondition:
    return MachineDeploymentCondition(
        type="Progressing",
        status=status,
        reason=reason,
        message="said before",
        last_update_time=ago(updated),
        last_transition_time=ago(moved),
    )
