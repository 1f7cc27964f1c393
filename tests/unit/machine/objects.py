"""Machines, Nodes and classes in as few words as a test needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mcm.api.core import Node, NodeCondition, NodeSpec, NodeStatus, SecretReference, Taint
from mcm.api.machine import (
    ClassSpec,
    CurrentStatus,
    LastOperation,
    Machine,
    MachineClass,
    MachinePhase,
    MachineSpec,
    MachineStatus,
    NodeTemplateSpec,
)
from mcm.api.meta import ObjectMeta, OwnerReference
from mcm.api.names import MACHINE_FINALIZER
from mcm.controllers.machine.settings import MachineSettings
from mcm.drain.request import Limits
from mcm.drain.selection import WaveSettings

BORN = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = MachineSettings(
    creation_timeout=timedelta(minutes=20),
    health_timeout=timedelta(minutes=10),
    drain_timeout=timedelta(hours=2),
    preserve_timeout=timedelta(hours=96),
    in_place_update_timeout=timedelta(minutes=20),
    drain_limits=Limits(),
    drain_waves=WaveSettings(),
    node_conditions=frozenset({"KernelDeadlock", "ReadonlyFilesystem", "DiskPressure"}),
)
OWNER = OwnerReference(api_version="v", kind="MachineSet", name="s", uid="set", controller=True)


def after(**span: float) -> datetime:
    """A moment so long after every machine's birth."""
    return BORN + timedelta(**span)


def machine(
    name: str = "m",
    *,
    phase: MachinePhase | str = "",
    node: str = "",
    provider_id: str = "",
    operation: LastOperation | None = None,
    conditions: tuple[NodeCondition, ...] = (),
    since: datetime | None = None,
    group: str = "",
    deleted: datetime | None = None,
    claimed: bool = True,
    owned: bool = False,
    template: NodeTemplateSpec | None = None,
    preserved: datetime | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    known_state: str = "",
    class_: ClassSpec | None = None,
) -> Machine:
    every = dict(labels or {})
    if node:
        every["node"] = node
    if group:
        every["name"] = group
    return Machine(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"uid-{name}",
            resource_version="7",
            creation_timestamp=BORN,
            deletion_timestamp=deleted,
            finalizers=(MACHINE_FINALIZER,) if claimed else (),
            labels=every,
            annotations=annotations or {},
            owner_references=(OWNER,) if owned else (),
        ),
        spec=MachineSpec(
            class_=class_ or ClassSpec(kind="MachineClass", name="c"),
            provider_id=provider_id,
            node_template=template,
        ),
        status=MachineStatus(
            conditions=conditions,
            last_operation=operation or LastOperation(),
            current_status=CurrentStatus(
                phase=phase, last_update_time=since, preserve_expiry_time=preserved
            ),
            last_known_state=known_state,
        ),
    )


def node(
    name: str = "n",
    *,
    conditions: tuple[NodeCondition, ...] = (),
    taints: tuple[Taint, ...] = (),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    provider_id: str = "",
    born: datetime = BORN,
    deleted: datetime | None = None,
    capacity: dict[str, str] | None = None,
) -> Node:
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version="9",
            creation_timestamp=born,
            deletion_timestamp=deleted,
            labels=labels or {},
            annotations=annotations or {},
            finalizers=finalizers,
        ),
        spec=NodeSpec(taints=taints, provider_id=provider_id),
        status=NodeStatus(conditions=conditions, capacity=capacity or {}),
    )


def class_(
    name: str = "c", *, secret: str = "", credentials: str = "", uid: str = "uid-c"
) -> MachineClass:
    return MachineClass(
        metadata=ObjectMeta(name=name, namespace="ns", uid=uid, resource_version="3"),
        secret_ref=SecretReference(name=secret, namespace="ns") if secret else None,
        credentials_secret_ref=(
            SecretReference(name=credentials, namespace="ns") if credentials else None
        ),
        provider_spec={"size": "s"},
    )


def condition(type_: str, status: str, *, reason: str = "", message: str = "") -> NodeCondition:
    return NodeCondition(
        type=type_, status=status, reason=reason, message=message, last_transition_time=BORN
    )


READY = condition("Ready", "True")
NOT_READY = condition("Ready", "False", reason="KubeletNotReady", message="no network")
