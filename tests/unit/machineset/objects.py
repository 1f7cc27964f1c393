"""Machines and sets for tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mcm.api.machine import (
    CurrentStatus,
    LastOperation,
    Machine,
    MachinePhase,
    MachineSet,
    MachineSetSpec,
    MachineSpec,
    MachineStatus,
    MachineTemplate,
)
from mcm.api.meta import JSONObject, LabelSelector, ObjectMeta, OwnerReference

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LABELS = {"name": "pool"}


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def machine(
    name: str = "m",
    phase: str = MachinePhase.RUNNING,
    *,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    age: float = 0.0,
    deleted: bool = False,
    preserved_until: datetime | None = None,
    changed: datetime | None = None,
    owner: str = "set-uid",
    operation: LastOperation | None = None,
    spec: MachineSpec | None = None,
) -> Machine:
    ref = OwnerReference(
        api_version="machine.sapcloud.io/v1alpha1",
        kind="MachineSet",
        name="set",
        uid=owner,
        controller=True,
    )
    return Machine(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"{name}-uid",
            resource_version="1",
            labels={**LABELS, **(labels or {})},
            annotations=annotations or {},
            creation_timestamp=ago(age),
            deletion_timestamp=NOW if deleted else None,
            owner_references=(ref,) if owner else (),
        ),
        spec=spec or MachineSpec(),
        status=MachineStatus(
            last_operation=operation or LastOperation(),
            current_status=CurrentStatus(
                phase=phase, preserve_expiry_time=preserved_until, last_update_time=changed
            ),
        ),
    )


def machine_set(
    replicas: int = 3,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    template: MachineTemplate | None = None,
    name: str = "set",
) -> MachineSet:
    return MachineSet(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"{name}-uid",
            resource_version="1",
            generation=1,
            labels=labels or {},
            annotations=annotations or {},
        ),
        spec=MachineSetSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=LABELS),
            template=template or MachineTemplate(metadata={"labels": LABELS}, spec=SPEC),
        ),
    )


SPEC: JSONObject = {"class": {"kind": "MachineClass", "name": "class-a"}}
