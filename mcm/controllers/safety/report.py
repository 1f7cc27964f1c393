"""What people and dashboards are told of orphan VMs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import final

from prometheus_client import CollectorRegistry, Counter

from mcm.api.machine import MACHINE_CLASSES, MachineClass
from mcm.controllers.safety.orphans import Vm
from mcm.events import EventSink, EventType
from mcm.metrics import once_per_registry
from mcm.wording import first_few

logger = logging.getLogger(__name__)

_NAMED = 10


@final
class OrphanMetrics:
    """``result``: ``deleted``, or ``stays`` for an attempt that failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.collections = Counter(
            "mcm_orphan_vms_collected",
            "VMs that no machine claims, by what came of the attempt to delete them.",
            ("namespace", "machine_class", "result"),
            registry=registry,
        )

    @classmethod
    def of(cls, registry: CollectorRegistry) -> OrphanMetrics:
        return once_per_registry(registry, cls)


@final
class OrphanReport:
    """Events go to the class, which has no status to say anything on."""

    def __init__(self, events: EventSink, metrics: OrphanMetrics) -> None:
        self._events = events
        self._metrics = metrics

    def deleted(self, class_: MachineClass, vm: Vm) -> None:
        self._count(class_, "deleted")
        self._tell(class_, "OrphanVMDeleted", f"{_name(vm)} belonged to no machine")

    def stays(self, class_: MachineClass, vm: Vm, reason: str) -> None:
        self._count(class_, "stays")
        self._tell(class_, "OrphanVMStays", f"{_name(vm)}: {reason}")

    def unlisted(self, class_: MachineClass, reason: str) -> None:
        self._tell(class_, "OrphanVMsUnknown", f"VMs cannot be listed: {reason}")

    def not_looked_for(self, class_: MachineClass, reason: str) -> None:
        self._tell(class_, "OrphanVMsNotLookedFor", f"Orphan VMs are not looked for: {reason}")

    def out_of_reach(self, class_: MachineClass, vms: Sequence[Vm]) -> None:
        """The class went before its orphans came of age."""
        named = first_few([_name(vm) for vm in vms], _NAMED)
        note = f"With the class went the way to delete what no machine claims: {named}"
        self._tell(class_, "OrphanVMsOutOfReach", note)

    def _count(self, class_: MachineClass, result: str) -> None:
        meta = class_.metadata
        self._metrics.collections.labels(meta.namespace, meta.name, result).inc()

    def _tell(self, class_: MachineClass, reason: str, note: str) -> None:
        logger.warning("orphan VMs", extra={"reason": reason, "note": note})
        self._events.event(MACHINE_CLASSES, class_, EventType.WARNING, reason, note)


def _name(vm: Vm) -> str:
    whose = f"machine name {vm.machine_name}" if vm.machine_name else "without machine name"
    return f"VM {vm.provider_id} ({whose})"
