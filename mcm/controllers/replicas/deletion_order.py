"""Which machine of a set goes first when some must go.

A total order over any machines at any moment: the same machines give the same victims on every
pass and in every process, so a repeated scale-down never picks another machine than the first did.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from mcm.api.machine import Machine, MachinePhase, MachineSet
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRESERVE,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    PRESERVE_AUTO,
    PRIORITY_DEFAULT,
    PRIORITY_DELETE_FIRST,
)
from mcm.api.timestamps import parse_rfc3339

DEFAULT_PRIORITY: Final = int(PRIORITY_DEFAULT)

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_EVER: Final = datetime.min.replace(tzinfo=UTC)

_PHASE_RANK: Final[Mapping[str, int]] = {
    MachinePhase.TERMINATING: 0,
    MachinePhase.FAILED: 1,
    MachinePhase.CRASH_LOOP_BACK_OFF: 2,
    MachinePhase.UNKNOWN: 3,
    MachinePhase.PENDING: 4,
    MachinePhase.AVAILABLE: 5,
    MachinePhase.IN_PLACE_UPDATING: 5,
    MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL: 5,
    MachinePhase.IN_PLACE_UPDATE_FAILED: 5,
    MachinePhase.RUNNING: 6,
}
# A machine that has no phase yet is on its way, just like one that is Pending.
_RANK_OF_OTHERS: Final = _PHASE_RANK[MachinePhase.PENDING]


class Rank(NamedTuple):
    """One machine's place; the smallest is deleted first. Later fields break ties."""

    preserved: bool
    preserved_by_user: bool
    preserved_until: datetime
    priority: int
    unmarked: bool
    marked_at: datetime
    phase: int
    created: datetime
    name: str


def deletion_order(machines: Iterable[Machine], now: datetime) -> list[Machine]:
    """Return ``machines``, whoever should be deleted first in front."""
    return sorted(machines, key=lambda machine: rank_of(machine, now))


def rank_of(machine: Machine, now: datetime) -> Rank:
    until = preserved_until(machine)
    preserved = until is not None and until > now
    marked_at = marked_for_deletion_at(machine)
    annotations = machine.metadata.annotations
    return Rank(
        preserved=preserved,
        preserved_by_user=preserved and annotations.get(ANNOTATION_PRESERVE) != PRESERVE_AUTO,
        preserved_until=until if preserved and until is not None else _EVER,
        priority=priority_of(machine),
        unmarked=marked_at is None,
        marked_at=marked_at or _NEVER,
        phase=_phase_rank(machine),
        created=machine.metadata.creation_timestamp or _NEVER,
        name=machine.metadata.name,
    )


def preserved_until(machine: Machine) -> datetime | None:
    return machine.status.current_status.preserve_expiry_time


def is_preserved(machine: Machine, now: datetime) -> bool:
    """Tell whether the machine is kept on somebody's request, and the time for it is not over."""
    until = preserved_until(machine)
    return until is not None and until > now


def priority_of(machine: Machine) -> int:
    """Read the priority annotation; absent or no integer counts as the default, 3."""
    text = machine.metadata.annotations.get(ANNOTATION_PRIORITY)
    return DEFAULT_PRIORITY if text is None or text == PRIORITY_DEFAULT else _integer(text)


def _integer(text: str) -> int:
    return int(text) if _INTEGER.fullmatch(text) else DEFAULT_PRIORITY


def marked_for_deletion_at(machine: Machine) -> datetime | None:
    """When the autoscaler chose the machine, or None if it did not (or nobody can read when)."""
    text = machine.metadata.annotations.get(ANNOTATION_MARKED_FOR_DELETION)
    if not text:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None


def is_marked_for_deletion(machine: Machine) -> bool:
    """Tell whether the autoscaler chose the machine to go first."""
    chosen = machine.metadata.annotations.get(ANNOTATION_PRIORITY) == PRIORITY_DELETE_FIRST
    return chosen and marked_for_deletion_at(machine) is not None


def chosen_by_autoscaler(machine_set: MachineSet, machines: Iterable[Machine]) -> Sequence[Machine]:
    """Return the machines that the autoscaler marked for its last change of the replicas.

    They go even if the set has no surplus: their pods were told to leave already.
    """
    changed_at = replicas_changed_at(machine_set)
    if changed_at is None:
        return ()
    return tuple(m for m in machines if _is_marked_for(m, changed_at))


def _is_marked_for(machine: Machine, changed_at: datetime) -> bool:
    marked_at = marked_for_deletion_at(machine) if is_marked_for_deletion(machine) else None
    return marked_at is not None and marked_at <= changed_at


def replicas_changed_at(machine_set: MachineSet) -> datetime | None:
    """When the autoscaler changed the replicas, as far as the set knows; None if it never did."""
    text = machine_set.metadata.annotations.get(ANNOTATION_REPLICA_CHANGE_BY_SCALER, "")
    try:
        return parse_rfc3339(text) if text else None
    except ValueError:
        return None


def _phase_rank(machine: Machine) -> int:
    if machine.metadata.deletion_timestamp is not None:
        return _PHASE_RANK[MachinePhase.TERMINATING]
    return _PHASE_RANK.get(machine.phase, _RANK_OF_OTHERS)
