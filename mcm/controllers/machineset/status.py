"""A set's status, counted from its machines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

import msgspec

from mcm.api.machine import (
    LastOperation,
    Machine,
    MachinePhase,
    MachineSet,
    MachineSetCondition,
    MachineSetStatus,
    MachineSummary,
    OperationState,
)
from mcm.api.names import (
    ANNOTATION_PRESERVE,
    CONDITION_REPLICA_FAILURE,
    PRESERVE_AUTO,
    REASON_INVALID_SPEC,
    STATUS_TRUE,
)
from mcm.api.templates import labels_of
from mcm.api.timestamps import whole_seconds
from mcm.controllers.conditions import find, without
from mcm.controllers.machineset.conditions import Conditions, with_condition
from mcm.controllers.machineset.frozen import with_frozen
from mcm.controllers.machineset.held_up_drains import with_held_up_drains
from mcm.controllers.overshooting.limits import Limits
from mcm.controllers.replicas.availability import is_available, min_ready_of
from mcm.controllers.replicas.deletion_order import preserved_until
from mcm.controllers.replicas.membership import is_terminating
from mcm.wording import same_words

_GENERATED_NAME: Final = re.compile(r"[a-z0-9.-]+-[a-z0-9]{5}\b")


@final
@dataclass(frozen=True, slots=True)
class ReplicaFailure:
    """Why the machines are not as the spec wants them."""

    reason: str
    message: str


def status_of(
    machine_set: MachineSet,
    machines: Sequence[Machine],
    failure: ReplicaFailure | None,
    now: datetime,
    *,
    limits: Limits | None = None,
) -> MachineSetStatus:
    """Return the status that ``machine_set`` should have.

    It equals the present one if nothing is to be said; ``lastOperation`` moves on only otherwise.
    ``limits`` are those at which the set is frozen and unfrozen, None: they are not known.
    """
    old = machine_set.status
    min_ready = min_ready_of(machine_set)
    wanted = msgspec.structs.replace(
        old,
        replicas=len(machines),
        fully_labeled_replicas=_count_labelled(machine_set, machines),
        ready_replicas=sum(map(_is_ready, machines)),
        available_replicas=sum(is_available(m, min_ready, now) for m in machines),
        preserved_failed_replicas=sum(map(_is_preserved_failure, machines)),
        auto_preserve_failed_machine_count=sum(map(_is_auto_preserved, machines)),
        failed_machines=tuple(_summaries(machine_set, machines)) or None,
        conditions=_conditions(machine_set, machines, failure, limits, now),
        observed_generation=machine_set.metadata.generation,
    )
    return _stamped(old, wanted, now)


def _conditions(
    machine_set: MachineSet,
    machines: Sequence[Machine],
    failure: ReplicaFailure | None,
    limits: Limits | None,
    now: datetime,
) -> Conditions:
    conditions = with_failure(machine_set.status.conditions, failure, now)
    conditions = with_frozen(conditions, machine_set, machines, limits, now)
    return with_held_up_drains(conditions, machines, now)


def rejected_status(machine_set: MachineSet, complaint: str, now: datetime) -> MachineSetStatus:
    """Return the status of a set whose spec cannot be acted on; the counts stay as they are."""
    failure = ReplicaFailure(REASON_INVALID_SPEC, complaint)
    old = machine_set.status
    wanted = msgspec.structs.replace(
        old,
        conditions=with_failure(old.conditions, failure, now),
        observed_generation=machine_set.metadata.generation,
    )
    return _stamped(old, wanted, now)


def with_failure(
    conditions: Conditions, failure: ReplicaFailure | None, now: datetime
) -> Conditions:
    """Set or remove ``ReplicaFailure``. Its message follows what is wrong; that a repetition names
    another machine, or another number, is no news."""
    if failure is None:
        return without(conditions, CONDITION_REPLICA_FAILURE)
    present = find(conditions, CONDITION_REPLICA_FAILURE)
    if present is not None and _says(present, failure):
        return conditions
    return with_condition(
        conditions,
        CONDITION_REPLICA_FAILURE,
        STATUS_TRUE,
        failure.reason,
        failure.message,
        now=now,
    )


def _says(present: MachineSetCondition, failure: ReplicaFailure) -> bool:
    if present.status != STATUS_TRUE or present.reason != failure.reason:
        return False
    if failure.reason == REASON_INVALID_SPEC:  # there a number may be what is wrong
        return present.message == failure.message
    return same_words(_nameless(present.message), _nameless(failure.message))


def _nameless(message: str) -> str:
    return _GENERATED_NAME.sub("#", message)


def _stamped(old: MachineSetStatus, wanted: MachineSetStatus, now: datetime) -> MachineSetStatus:
    if wanted == old:
        return old
    operation = LastOperation(last_update_time=whole_seconds(now))
    return msgspec.structs.replace(wanted, last_operation=operation)


def _count_labelled(machine_set: MachineSet, machines: Iterable[Machine]) -> int:
    labels = labels_of(machine_set.spec.template).items()
    return sum(labels <= machine.metadata.labels.items() for machine in machines)


def _is_ready(machine: Machine) -> bool:
    return machine.phase == MachinePhase.RUNNING and not is_terminating(machine)


def _is_preserved_failure(machine: Machine) -> bool:
    return preserved_until(machine) is not None and machine.phase == MachinePhase.FAILED


def _is_auto_preserved(machine: Machine) -> bool:
    return machine.metadata.annotations.get(ANNOTATION_PRESERVE) == PRESERVE_AUTO


def _summaries(machine_set: MachineSet, machines: Iterable[Machine]) -> Iterable[MachineSummary]:
    """Machines whose last operation failed, in the order of their names."""
    failed = (m for m in machines if m.status.last_operation.state == OperationState.FAILED)
    for machine in sorted(failed, key=lambda m: m.metadata.name):
        if not _is_preserved_failure(machine):
            yield MachineSummary(
                name=machine.metadata.name,
                provider_id=machine.spec.provider_id,
                last_operation=machine.status.last_operation,
                owner_ref=machine_set.metadata.name,
            )
