"""What is shown of each machine, set and deployment; names, labels, values as in the Go original.

Where that one shows what is not so, this does not: replicas of a set are all of them, a percentage
is shown as the machines that it comes to, a set's class is the one that its machines are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, final

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import (
    Machine,
    MachineDeployment,
    MachinePhase,
    MachineSet,
    MachineSummary,
)
from mcm.api.meta import ObjectMeta, T
from mcm.api.names import STRATEGY_ROLLING_UPDATE
from mcm.api.strategies import surge_of, unavailable_of
from mcm.api.templates import class_of

Sample: TypeAlias = tuple[Mapping[str, str], float]
"""Labels beyond the object's name and namespace, and a value."""

PHASES: Final[Mapping[str, int]] = {
    MachinePhase.TERMINATING: -4,
    MachinePhase.FAILED: -3,
    MachinePhase.CRASH_LOOP_BACK_OFF: -2,
    MachinePhase.UNKNOWN: -1,
    MachinePhase.PENDING: 0,
    MachinePhase.RUNNING: 1,
}
CONDITIONS: Final[Mapping[str, int]] = {"True": 1, "False": 0, "Unknown": 2}

Owner = TypeVar("Owner", MachineSet, MachineDeployment)


@final
@dataclass(frozen=True, slots=True)
class Family(Generic[T]):
    """One gauge, and what each object adds to it. ``labels`` are those besides the object's own."""

    name: str
    documentation: str
    samples: Callable[[T], Iterable[Sample]]
    labels: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """All that is shown of one resource. ``scraped_as`` is its name where a scrape fails for it,
    ``binary`` that of the Go process which shows it."""

    count: str
    plural: str
    scraped_as: str
    binary: str
    families: Sequence[Family[T]]


# ---- of any object -------------------------------------------------------------------------------

_CREATED: Final = "createdAt"


def _created_at(meta: ObjectMeta) -> Mapping[str, str]:
    created = meta.creation_timestamp
    return {_CREATED: str(int(created.timestamp())) if created else ""}


def _conditions(obj: Machine | MachineSet | MachineDeployment) -> Iterator[Sample]:
    told = {condition.type: condition.status for condition in obj.status.conditions}
    for kind, status in told.items():  # one for each type: two would be one series twice
        yield {"condition": kind}, CONDITIONS.get(status, 2)


_SUMMARY: Final[Mapping[str, Callable[[MachineSummary], str]]] = {
    "failed_machine_name": lambda m: m.name,
    "failed_machine_provider_id": lambda m: m.provider_id,
    "failed_machine_owner_ref": lambda m: m.owner_ref,
    "failed_machine_last_operation_state": lambda m: m.last_operation.state,
    "failed_machine_last_operation_machine_operation_type": lambda m: m.last_operation.type,
}
"""What is shown of a failed machine; of its error nothing, which may be any text."""


def _failed_machines(obj: MachineSet | MachineDeployment) -> Iterator[Sample]:
    named = {summary.name: summary for summary in obj.status.failed_machines or ()}
    for summary in named.values():  # one for each name: two would be one series twice
        yield {label: read(summary) for label, read in _SUMMARY.items()}, 1


def _family_of_conditions(prefix: str) -> Family[Owner]:
    text = "Conditions: True 1, False 0, Unknown 2."
    return Family(f"{prefix}_status_condition", text, _conditions, ("condition",))


def _family_of_failed_machines(prefix: str) -> Family[Owner]:
    text = "Constant 1 for each machine that failed and waits for its replacement."
    return Family(f"{prefix}_failed_machines", text, _failed_machines, tuple(_SUMMARY))


def _numbers(
    prefix: str, numbers: Mapping[str, tuple[str, Callable[[Owner], int | None]]]
) -> Iterator[Family[Owner]]:
    """One family for each number; an object without it (None) has no series."""

    def samples(number: Callable[[Owner], int | None]) -> Callable[[Owner], Iterable[Sample]]:
        return lambda obj: () if (value := number(obj)) is None else (({}, value),)

    for suffix, (text, number) in numbers.items():
        yield Family(f"{prefix}_{suffix}", text, samples(number))


# ---- machines ------------------------------------------------------------------------------------


def _phase(machine: Machine) -> Iterator[Sample]:
    yield {}, PHASES.get(machine.phase, 0)


_MACHINE_INFO: Final[Mapping[str, Callable[[Machine], str]]] = {
    "spec_provider_id": lambda m: m.spec.provider_id,
    "spec_class_api_group": lambda m: m.spec.class_.api_group,
    "spec_class_kind": lambda m: m.spec.class_.kind,
    "spec_class_name": lambda m: m.spec.class_.name,
    "node_name": lambda m: m.node_name,
}


def _machine_info(machine: Machine) -> Iterator[Sample]:
    labels = {label: read(machine) for label, read in _MACHINE_INFO.items()}
    yield {**_created_at(machine.metadata), **labels}, 1


MACHINE_KIND: Final[Kind[Machine]] = Kind(
    "mcm_machine_items_total",
    "Machines",
    "Machine-count",
    "machine-controller-manager-provider",
    (
        Family(
            "mcm_machine_current_status_phase",
            "Phase: Terminating -4, Failed -3, CrashLoopBackOff -2, Unknown -1, Running 1, else 0.",
            _phase,
        ),
        Family(
            "mcm_machine_info",
            "Constant 1; the labels describe the machine.",
            _machine_info,
            (_CREATED, *_MACHINE_INFO),
        ),
        Family(
            "mcm_machine_status_condition",
            "Conditions of the machine and its Node: True 1, False 0, Unknown 2.",
            _conditions,
            ("condition",),
        ),
    ),
)


# ---- sets ----------------------------------------------------------------------------------------


def _set_info(machine_set: MachineSet) -> Iterator[Sample]:
    class_ = machine_set.spec.machine_class or class_of(machine_set.spec.template)
    yield (
        {
            **_created_at(machine_set.metadata),
            "spec_machine_class_api_group": class_.api_group,
            "spec_machine_class_kind": class_.kind,
            "spec_machine_class_name": class_.name,
        },
        1,
    )


_SET_NUMBERS: Final[Mapping[str, tuple[str, Callable[[MachineSet], int | None]]]] = {
    "info_spec_replicas": ("Machines wanted.", lambda s: s.spec.replicas),
    "info_spec_min_ready_seconds": (
        "Seconds a machine must run before it counts as available.",
        lambda s: s.spec.min_ready_seconds,
    ),
    "status_replicas": ("Machines there are.", lambda s: s.status.replicas),
    "status_available_replicas": (
        "Machines that have been ready for long enough.",
        lambda s: s.status.available_replicas,
    ),
    "status_ready_replicas": ("Machines that are ready.", lambda s: s.status.ready_replicas),
    "status_fully_labelled_replicas": (
        "Machines that bear all labels of the template.",
        lambda s: s.status.fully_labeled_replicas,
    ),
}

SET_KIND: Final[Kind[MachineSet]] = Kind(
    "mcm_machine_set_items_total",
    "MachineSets",
    "Machineset-count",
    "machine-controller-manager",
    (
        Family(
            "mcm_machine_set_info",
            "Constant 1; the labels describe the set.",
            _set_info,
            (
                _CREATED,
                "spec_machine_class_api_group",
                "spec_machine_class_kind",
                "spec_machine_class_name",
            ),
        ),
        *_numbers("mcm_machine_set", _SET_NUMBERS),
        _family_of_conditions("mcm_machine_set"),
        _family_of_failed_machines("mcm_machine_set"),
    ),
)


# ---- deployments ---------------------------------------------------------------------------------


def _deployment_info(deployment: MachineDeployment) -> Iterator[Sample]:
    strategy = defaulted_strategy(deployment.spec).type
    yield {**_created_at(deployment.metadata), "spec_strategy_type": strategy}, 1


def _rolls(deployment: MachineDeployment) -> bool:
    return defaulted_strategy(deployment.spec).type == STRATEGY_ROLLING_UPDATE


_DEPLOYMENT_NUMBERS: Final[Mapping[str, tuple[str, Callable[[MachineDeployment], int | None]]]] = {
    "info_spec_replicas": ("Machines wanted.", lambda d: d.spec.replicas),
    "info_spec_paused": ("1 while its rollout is paused.", lambda d: int(d.spec.paused)),
    "info_spec_min_ready_seconds": (
        "Seconds a machine must run before it counts as available.",
        lambda d: d.spec.min_ready_seconds,
    ),
    "info_spec_rolling_update_max_surge": (
        "Machines that a rolling update may add, percentages resolved.",
        lambda d: surge_of(d.spec) if _rolls(d) else None,
    ),
    "info_spec_rolling_update_max_unavailable": (
        "Machines that may be missing during a rolling update, percentages resolved.",
        lambda d: unavailable_of(d.spec) if _rolls(d) else None,
    ),
    "info_spec_revision_history_limit": (
        "Old sets that are kept for a rollback, if limited.",
        lambda d: d.spec.revision_history_limit,
    ),
    "info_spec_progress_deadline_seconds": (
        "Seconds without progress after which a rollout counts as stuck, if it ever does.",
        lambda d: d.spec.progress_deadline_seconds,
    ),
    "info_spec_rollback_to_revision": (
        "Revision that a rollback was asked to, if one was (0: the last).",
        lambda d: d.spec.rollback_to.revision if d.spec.rollback_to else None,
    ),
    "status_replicas": ("Machines there are.", lambda d: d.status.replicas),
    "status_updated_replicas": (
        "Machines made from the current template.",
        lambda d: d.status.updated_replicas,
    ),
    "status_available_replicas": (
        "Machines that have been ready for long enough.",
        lambda d: d.status.available_replicas,
    ),
    "status_unavailable_replicas": (
        "Machines that are wanted and not available.",
        lambda d: d.status.unavailable_replicas,
    ),
    "status_ready_replicas": ("Machines that are ready.", lambda d: d.status.ready_replicas),
    "status_collision_count": (
        "How often the name of a new set was taken already, if ever.",
        lambda d: d.status.collision_count,
    ),
}

DEPLOYMENT_KIND: Final[Kind[MachineDeployment]] = Kind(
    "mcm_machine_deployment_items_total",
    "MachineDeployments",
    "Machinedeployment-count",
    "machine-controller-manager",
    (
        Family(
            "mcm_machine_deployment_info",
            "Constant 1; the labels describe the deployment.",
            _deployment_info,
            (_CREATED, "spec_strategy_type"),
        ),
        *_numbers("mcm_machine_deployment", _DEPLOYMENT_NUMBERS),
        _family_of_conditions("mcm_machine_deployment"),
        _family_of_failed_machines("mcm_machine_deployment"),
    ),
)
