"""What people and dashboards are told of orphan VMs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge

from mcm.api.machine import MACHINE_CLASSES, MachineClass
from mcm.controllers.safety.orphans import Vm
from mcm.events import EventSink, EventType
from mcm.metrics import once_per_registry
from mcm.wording import first_few

logger = logging.getLogger(__name__)

_NAMED = 10
_RESULTS = ("deleted", "stays")


@final
class OrphanMetrics:
    """``result``: ``deleted``, or ``stays`` for an attempt that failed. Of a class that is gone no
    series is left."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.collections = Counter(
            "mcm_orphan_vms_collected",
            "VMs that no machine claims, by what came of the attempt to delete them.",
            ("namespace", "machine_class", "result"),
            registry=registry,
        )

        self.there = Gauge(
            "mcm_orphan_vms",
            "VMs that no machine claimed when their class was last looked at, and that were not "
            "deleted since: too young yet, or in the way of something.",
            ("namespace", "machine_class"),
            registry=registry,
        )

    def forget(self, namespace: str, machine_class: str) -> None:
        with suppress(KeyError):
            self.there.remove(namespace, machine_class)
        for result in _RESULTS:
            with suppress(KeyError):
                self.collections.remove(namespace, machine_class, result)

    @classmethod
    def of(cls, registry: CollectorRegistry) -> OrphanMetrics:
        return once_per_registry(registry, cls)


@final
class OrphanReport:
    """Events go to the class, which has no status to say anything on."""

    def __init__(self, events: EventSink, metrics: OrphanMetrics) -> None:
        self._events = events
        self._metrics = metrics

    def counted(self, class_: MachineClass, orphans: int) -> None:
        """Show how many are left of a class that was looked at."""
        meta = class_.metadata
        self._metrics.there.labels(meta.namespace, meta.name).set(orphans)
        for result in _RESULTS:  # rates are right from the first one on
            self._metrics.collections.labels(meta.namespace, meta.name, result)

    def forget(self, class_key: str) -> None:
        """The class is gone, and what was shown of it with it."""
        namespace, _, name = class_key.partition("/")
        self._metrics.forget(namespace, name)

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
