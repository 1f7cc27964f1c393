"""How long machines take, in gauges that keep the last value; names as in the Go original.

Machines without deployment (label ``name``) are left out: nobody would find them.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import final

from prometheus_client import CollectorRegistry, Gauge

from mcm.api.machine import Machine, MachineClass, MachineDeployment
from mcm.api.names import LABEL_NAME, LABEL_ZONE
from mcm.controllers.machine.zone import template_labels
from mcm.informers.change import Change
from mcm.informers.informer import Informer
from mcm.metrics import PlainCounter, once_per_registry

_LABELS = ("namespace", "machine_deployment", "instance_type", "zone")


@final
class MachineMetrics:
    """One object a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def duration(what: str) -> Gauge:
            name = f"mcm_machine_{what}_duration_seconds"
            text = f"Seconds the last machine took to {what}."
            return Gauge(name, text, _LABELS, registry=registry)

        self._seen: set[tuple[str, ...]] = set()
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
        self._failed_join = PlainCounter(
            "mcm_machine_num_failed_join",
            "Machines that did not join in time.",
            _LABELS,
            registry=registry,
        )

    @classmethod
    def of(cls, registry: CollectorRegistry) -> MachineMetrics:
        return once_per_registry(registry, cls)

    def keep_of_those_there(
        self, machines: Informer[Machine], deployments: Informer[MachineDeployment]
    ) -> None:
        """From now on, forget a deployment's series when it and the last of its machines go."""

        gone: set[tuple[str, str]] = set()

        def look(group: tuple[str, str]) -> None:
            if group in gone and not any(_group(m) == group for m in machines.store.list()):
                gone.discard(group)
                self._forget(*group)

        def of_machine(change: Change[Machine]) -> None:
            if change.new is None:
                look(_group(change.object))

        def of_deployment(change: Change[MachineDeployment]) -> None:
            group = change.object.metadata.namespace, change.object.metadata.name
            if change.new is None:
                gone.add(group)
                look(group)
            else:
                gone.discard(group)

        machines.add_handler(of_machine)
        deployments.add_handler(of_deployment)

    def _forget(self, namespace: str, deployment: str) -> None:
        gone = {s for s in self._seen if s[:2] == (namespace, deployment)}
        self._seen -= gone
        for labels in gone:
            self._failed_join.remove(*labels)
            for gauge in (self._create, self._initialize, self._join, self._delete):
                with suppress(KeyError):
                    gauge.remove(*labels)
        with suppress(KeyError):
            self._drain.remove(namespace, deployment)

    def created(self, machine: Machine, class_: MachineClass | None, now: datetime) -> None:
        self._set(self._create, machine, class_, _age(machine, now))
        if labels := _labels(machine, class_):
            self._failed_join.inc(*labels, by=0.0)

    def initialized(self, machine: Machine, class_: MachineClass | None, now: datetime) -> None:
        self._set(self._initialize, machine, class_, _age(machine, now))

    def joined(self, machine: Machine, class_: MachineClass | None, now: datetime) -> None:
        self._set(self._join, machine, class_, _age(machine, now))

    def deleted(self, machine: Machine, class_: MachineClass | None, now: datetime) -> None:
        self._set(self._delete, machine, class_, _going_for(machine, now))

    def drained(self, machine: Machine, since: datetime, now: datetime) -> None:
        if deployment := machine.metadata.labels.get(LABEL_NAME):
            labels = (machine.metadata.namespace, deployment)
            self._drain.labels(*labels).set(_seconds(now - since))

    def failed_to_join(self, machine: Machine, class_: MachineClass | None) -> None:
        if labels := _labels(machine, class_):
            self._seen.add(labels)
            self._failed_join.inc(*labels)

    def _set(
        self, gauge: Gauge, machine: Machine, class_: MachineClass | None, span: timedelta
    ) -> None:
        if labels := _labels(machine, class_):
            self._seen.add(labels)
            gauge.labels(*labels).set(_seconds(span))


def _group(machine: Machine) -> tuple[str, str]:
    return machine.metadata.namespace, machine.metadata.labels.get(LABEL_NAME, "")


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
