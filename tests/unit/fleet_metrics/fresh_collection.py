"""What the fleet's metrics must be: collected afresh from the stores, by the metrics library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachinePhase,
    MachineSet,
)
from mcm.informers.factory import InformerFactory

_PHASES: dict[str, int] = {
    MachinePhase.TERMINATING: -4,
    MachinePhase.FAILED: -3,
    MachinePhase.CRASH_LOOP_BACK_OFF: -2,
    MachinePhase.UNKNOWN: -1,
    MachinePhase.PENDING: 0,
    MachinePhase.RUNNING: 1,
}
_CONDITION = {"True": 1, "False": 0, "Unknown": 2}
_OBJECT = ("name", "namespace")

_SET_NUMBERS: dict[str, Callable[[MachineSet], int]] = {
    "info_spec_replicas": lambda s: s.spec.replicas,
    "status_replicas": lambda s: s.status.replicas,
    "status_available_replicas": lambda s: s.status.available_replicas,
    "status_ready_replicas": lambda s: s.status.ready_replicas,
    "status_fully_labelled_replicas": lambda s: s.status.fully_labeled_replicas,
}
_DEPLOYMENT_NUMBERS: dict[str, Callable[[MachineDeployment], int]] = {
    "info_spec_replicas": lambda d: d.spec.replicas,
    "info_spec_paused": lambda d: int(d.spec.paused),
    "status_replicas": lambda d: d.status.replicas,
    "status_updated_replicas": lambda d: d.status.updated_replicas,
    "status_available_replicas": lambda d: d.status.available_replicas,
    "status_unavailable_replicas": lambda d: d.status.unavailable_replicas,
    "status_ready_replicas": lambda d: d.status.ready_replicas,
}


@final
class FleetCollector(Collector):
    """Register with a ``CollectorRegistry``; holds the factory whose stores it reads."""

    def __init__(self, informers: InformerFactory) -> None:
        self._machines = informers.store(MACHINES)
        self._sets = informers.store(MACHINE_SETS)
        self._deployments = informers.store(MACHINE_DEPLOYMENTS)

    def describe(self) -> Iterable[Metric]:
        """Say nothing beforehand: registering must not walk the stores."""
        return ()

    def collect(self) -> Iterator[Metric]:
        machines = self._machines.list()
        sets = self._sets.list()
        deployments = self._deployments.list()
        yield _count("mcm_machine_items_total", "Machines", len(machines))
        yield _count("mcm_machine_set_items_total", "MachineSets", len(sets))
        yield _count("mcm_machine_deployment_items_total", "MachineDeployments", len(deployments))
        yield from _machine_families(machines)
        yield from _number_families("mcm_machine_set", sets, _SET_NUMBERS)
        yield from _number_families("mcm_machine_deployment", deployments, _DEPLOYMENT_NUMBERS)
        yield _conditions("mcm_machine_set_status_condition", sets)
        yield _conditions("mcm_machine_deployment_status_condition", deployments)


def _count(name: str, what: str, value: int) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, f"Number of {what}.", value=value)


def _machine_families(machines: Iterable[Machine]) -> Iterator[Metric]:
    phase = GaugeMetricFamily(
        "mcm_machine_current_status_phase",
        "Phase: Terminating -4, Failed -3, CrashLoopBackOff -2, Unknown -1, Running 1, else 0.",
        labels=_OBJECT,
    )
    info = GaugeMetricFamily(
        "mcm_machine_info",
        "Constant 1; the labels describe the machine.",
        labels=(
            *_OBJECT,
            "createdAt",
            "spec_provider_id",
            "spec_class_api_group",
            "spec_class_kind",
            "spec_class_name",
            "node_name",
        ),
    )
    for machine in machines:
        meta, class_ = machine.metadata, machine.spec.class_
        created = meta.creation_timestamp
        phase.add_metric((meta.name, meta.namespace), _PHASES.get(machine.phase, 0))
        info.add_metric(
            (
                meta.name,
                meta.namespace,
                str(int(created.timestamp())) if created else "",
                machine.spec.provider_id,
                class_.api_group,
                class_.kind,
                class_.name,
                machine.node_name,
            ),
            1,
        )
    yield phase
    yield info
    yield _machine_conditions(machines)


def _machine_conditions(machines: Iterable[Machine]) -> Metric:
    family = GaugeMetricFamily(
        "mcm_machine_status_condition",
        "Condition of the machine: True 1, False 0, Unknown 2.",
        labels=(*_OBJECT, "condition"),
    )
    for machine in machines:
        for condition in machine.status.conditions:
            family.add_metric(
                (machine.metadata.name, machine.metadata.namespace, condition.type),
                _CONDITION.get(condition.status, 2),
            )
    return family


def _number_families(
    prefix: str,
    objects: Iterable[MachineSet] | Iterable[MachineDeployment],
    numbers: dict[str, Callable[[MachineSet], int]] | dict[str, Callable[[MachineDeployment], int]],
) -> Iterator[Metric]:
    for suffix, number in numbers.items():
        family = GaugeMetricFamily(f"{prefix}_{suffix}", f"{suffix} of the object.", labels=_OBJECT)
        for obj in objects:
            family.add_metric((obj.metadata.name, obj.metadata.namespace), number(obj))  # type: ignore[arg-type]
        yield family


def _conditions(
    name: str, objects: Iterable[MachineSet] | Iterable[MachineDeployment]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        name, "Condition: True 1, False 0, Unknown 2.", labels=(*_OBJECT, "condition")
    )
    for obj in objects:
        for condition in obj.status.conditions:
            family.add_metric(
                (obj.metadata.name, obj.metadata.namespace, condition.type),
                _CONDITION.get(condition.status, 2),
            )
    return family
