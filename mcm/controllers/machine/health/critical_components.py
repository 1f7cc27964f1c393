"""Whether critical components of a Node hold its machine in Pending, and when that is worth saying.

Whoever runs them (Gardener does) puts a taint on each Node that joins, and takes it off once they
are ready there. That takes seconds; a write each time would be too many.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from mcm.api.core import Node
from mcm.api.machine import Machine, MachinePhase, MachineStatus
from mcm.api.names import (
    CONDITION_NODE_READY,
    EFFECT_NO_SCHEDULE,
    STATUS_FALSE,
    TAINT_CRITICAL_COMPONENTS_NOT_READY,
)
from mcm.controllers.machine.own_conditions import OwnCondition, find_own, with_own, without_own

REASON: Final = "NodeTainted"

_KIND: Final = OwnCondition.CRITICAL_COMPONENTS_READY
_TOLD_AFTER: Final = timedelta(minutes=1)


def are_awaited(node: Node) -> bool:
    """Tell whether the Node says that its critical components are not ready."""
    return any(
        taint.key == TAINT_CRITICAL_COMPONENTS_NOT_READY and taint.effect == EFFECT_NO_SCHEDULE
        for taint in node.spec.taints
    )


def seconds_until_told(
    machine: Machine, node: Node, *, healthy: bool, born: datetime, now: datetime
) -> float | None:
    """Return how long the machine may yet wait until it says so; None if it need not."""
    waits = machine.phase == MachinePhase.PENDING and healthy and are_awaited(node)
    if not waits or _is_told(machine):
        return None
    conditions = (c for c in node.status.conditions if c.type == CONDITION_NODE_READY)
    since = next((c.last_transition_time for c in conditions), None) or born
    return max(0.0, (since + _TOLD_AFTER - now).total_seconds())


def is_told_wrongly(machine: Machine, node: Node) -> bool:
    """Tell whether the machine says that it waits, and does not."""
    return _is_told(machine) and not are_awaited(node)


def with_told(status: MachineStatus, node_name: str, now: datetime) -> MachineStatus:
    """Say that the machine waits, and for whom."""
    text = (
        f"The machine stays Pending while node {node_name} has the taint "
        f"{TAINT_CRITICAL_COMPONENTS_NOT_READY}: whoever put it there takes it off once the "
        "components are ready"
    )
    return with_own(status, _KIND, STATUS_FALSE, REASON, text, now)


def without_told(status: MachineStatus) -> MachineStatus:
    return without_own(status, _KIND)


def _is_told(machine: Machine) -> bool:
    return find_own(machine.status, _KIND) is not None
