"""How long machines take, in gauges that keep the last value; names as in the Go original.

Machines without deployment (label ``name``) are left out: nobody would find them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge

from mcm.api.machine import Machine, MachineClass
from mcm.api.names import LABEL_NAME, LABEL_ZONE
from mcm.controllers.machine.zone import template_labels
from mcm.metrics import once_per_registry

_LABELS = ("namespace", "machine_deployment", "instance_type", "zone")


@final
class MachineMetrics:
    """One object a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def duration(what: str) -> Gauge:
            name = f"mcm_machine_{what}_duration_seconds"
            text = f"Seconds the last machine took to {what}."
            return Gauge(name, text, _LABELS, registry=registry)

        self._create = duration("create")
        self._initialize = duration("initialize")
        self._join = duration("join")
        self._delete = duration("delete")
        self._drain = Gauge(
            "mcm_machine_drain_duration_seconds",
            "Seconds the last drain took.",
            _LABELS[:2],
            registry=registry,
        )
        self._failed_join = Counter(
            "mcm_machine_num_failed_join",
            "Machines that did not join in time.",
            _LABELS,
            registry=registry,
        )

    @classmethod
    def of(cls, registry: CollectorRegistry) -> MachineMetrics:
        return once_per_registry(registry, cls)

    def created(self, machine: Machine, class_: MachineClass | None, now: datetime) -> None:
        _set(self._create, machine, class_, _age(machine, now))

    def initialized(self, machine: Machine, class_: MachineClass | None, now: datetime) -> None:
        _set(self._initialize, machine, class_, _age(machine, now))

    def joined(self, machine: Machine, class_: MachineClass | None, now: datetime) -> None:
        _set(self._join, machine, class_, _age(machine, now))

    def deleted(self, machine: Machine, class_: MachineClass | None, now: datetime) -> None:
        _set(self._delete, machine, class_, _going_for(machine, now))

    def drained(self, machine: Machine, since: datetime, now: datetime) -> None:
        if deployment := machine.metadata.labels.get(LABEL_NAME):
            labels = (machine.metadata.namespace, deployment)
            self._drain.labels(*labels).set(_seconds(now - since))

    def failed_to_join(self, machine: Machine, class_: MachineClass | None) -> None:
        if labels := _labels(machine, class_):
            self._failed_join.labels(*labels).inc()


def _set(gauge: Gauge, machine: Machine, class_: MachineClass | None, span: timedelta) -> None:
    if labels := _labels(machine, class_):
        gauge.labels(*labels).set(_seconds(span))


def _labels(machine: Machine, class_: MachineClass | None) -> tuple[str, ...]:
    deployment = machine.metadata.labels.get(LABEL_NAME)
    if not deployment:
        return ()
    instance_type = class_.node_template.instance_type if class_ and class_.node_template else ""
    zone = template_labels(machine).get(LABEL_ZONE, "")
    return machine.metadata.namespace, deployment, instance_type, zone


def _age(machine: Machine, now: datetime) -> timedelta:
    return now - (machine.metadata.creation_timestamp or now)


def _going_for(machine: Machine, now: datetime) -> timedelta:
    return now - (machine.metadata.deletion_timestamp or now)


def _seconds(span: timedelta) -> int:
    return max(0, round(span.total_seconds()))
