"""How many VMs of each class are as its provider spec says, kept up to date by what changes."""

from __future__ import annotations

from contextlib import suppress
from typing import final

from prometheus_client import CollectorRegistry, Gauge

from mcm.api.machine import Machine, MachineClass
from mcm.controllers.indexes import class_keys_of, machines_of_class
from mcm.controllers.machine.hot_update.need import needs_update
from mcm.controllers.machine.hot_update.record import WantedSpec
from mcm.informers import Change
from mcm.informers.store import Store
from mcm.metrics import once_per_registry


@final
class HotUpdateMetrics:
    """One object a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.outdated = Gauge(
            "mcm_machine_class_outdated_machines",
            "Machines whose VM was not yet brought to the providerSpec of their class.",
            ("namespace", "machine_class"),
            registry=registry,
        )

    @classmethod
    def of(cls, registry: CollectorRegistry) -> HotUpdateMetrics:
        return once_per_registry(registry, cls)


@final
class HotUpdateProgress:
    """Counted are machines that have a VM and are not on their way out."""

    def __init__(
        self,
        machines: Store[Machine],
        classes: Store[MachineClass],
        metrics: HotUpdateMetrics,
    ) -> None:
        self._machines = machines
        self._classes = classes
        self._metrics = metrics
        self._outdated: dict[str, set[str]] = {}
        self._wanted: dict[str, tuple[MachineClass, WantedSpec]] = {}

    def wanted_of(self, class_: MachineClass) -> WantedSpec:
        """Return what the class says now; canonical JSON is made once for each state of it."""
        key = class_.metadata.key
        known = self._wanted.get(key)
        if known is None or _differ(known[0], class_):
            known = self._wanted[key] = class_, WantedSpec.of(class_.provider_spec)
        return known[1]

    def finished(self, class_: MachineClass) -> int:
        """Return how many VMs the class has if all are as it says; 0 if one is not."""
        if self._outdated.get(class_.metadata.key):
            return 0
        machines = machines_of_class(self._machines, class_.metadata.key)
        return sum(map(_counts, machines))

    def machine_changed(self, change: Change[Machine]) -> None:
        """Count a machine anew."""
        before, now = change.old, change.new
        left = set(class_keys_of(before)) if before is not None else set()
        entered = set(class_keys_of(now)) if now is not None else set()
        for class_key in left | entered:
            outdated = self._outdated.setdefault(class_key, set())
            known = len(outdated)
            if now is not None and class_key in entered:
                self._count(class_key, now)
            else:
                outdated.discard(change.object.metadata.key)
            # Most changes are of something else; of a class that is gone nothing is kept.
            if len(outdated) != known or self._classes.get(class_key) is None:
                self._show(class_key)

    def class_changed(self, change: Change[MachineClass]) -> None:
        """Count all machines of a class anew if it says something else now."""
        before, now = change.old, change.new
        key = change.object.metadata.key
        if now is None:
            self._outdated.pop(key, None)
            self._wanted.pop(key, None)
            self._show(key)
        elif before is None or _differ(before, now):
            for machine in machines_of_class(self._machines, key):
                self._count(key, machine)
            self._show(key)

    def _count(self, class_key: str, machine: Machine) -> None:
        class_, outdated = self._classes.get(class_key), self._outdated.setdefault(class_key, set())
        wanting = (
            class_ is not None
            and _counts(machine)
            and needs_update(machine, self.wanted_of(class_))
        )
        (outdated.add if wanting else outdated.discard)(machine.metadata.key)

    def _show(self, class_key: str) -> None:
        namespace, _, name = class_key.partition("/")
        if self._classes.get(class_key) is None:
            self._outdated.pop(class_key, None)
            with suppress(KeyError):
                self._metrics.outdated.remove(namespace, name)
            return
        gauge = self._metrics.outdated.labels(namespace, name)
        gauge.set(len(self._outdated.get(class_key, ())))


def _counts(machine: Machine) -> bool:
    return bool(machine.spec.provider_id) and machine.metadata.deletion_timestamp is None


def _differ(class_: MachineClass, other: MachineClass) -> bool:
    """Tell whether they may say different things; True equals 1 in Python, but not in JSON."""
    return class_ is not other and repr(class_.provider_spec) != repr(other.provider_spec)
