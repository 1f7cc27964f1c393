"""Is a machine healthy, and what follows: its next phase, what to mirror, when to look again.

What is judged are the Node's conditions; the machine's status holds a copy of them for those who
read only machines. While a machine joins, its Node's conditions flip many times: they are copied
when they decide something, not at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import final

from mcm.api.core import Node, NodeCondition
from mcm.api.durations import format_duration
from mcm.api.machine import (
    LastOperation,
    Machine,
    MachinePhase,
    OperationState,
    OperationType,
)
from mcm.api.names import (
    CONDITION_NODE_READY,
)
from mcm.controllers.in_place_marks import marks_of
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.health import critical_components
from mcm.controllers.machine.health.conditions import (
    conditions_differ,
    describe_trouble,
    is_healthy,
    is_trouble,
)
from mcm.controllers.machine.health.meltdown.fleet_health import is_held
from mcm.controllers.machine.health.meltdown.holding import (
    RESUMED,
    Replaceable,
    held_by,
    is_shown,
    timeout_start,
)
from mcm.controllers.machine.health.meltdown.protection import ALLOWED, Verdict
from mcm.controllers.machine.initialization import is_initialized
from mcm.controllers.machine.own_conditions import of_node
from mcm.controllers.machine.settings import MachineSettings
from mcm.controllers.reachability import Reachability

_IN_PLACE = (MachinePhase.IN_PLACE_UPDATING, MachinePhase.IN_PLACE_UPDATE_FAILED)
_TENDED = (MachinePhase.RUNNING, MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL)
"""Phases in which a Node is to be healthy."""
_AFTER_AN_UPDATE = (
    MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL,
    MachinePhase.UNKNOWN,
    MachinePhase.FAILED,
)
"""Phases in which an updated machine waits for its new set, and not yet runs."""


@final
@dataclass(frozen=True, slots=True)
class HealthDecision:
    """What to write, if anything. ``after``: seconds until a limit is reached; None: no limit."""

    phase: MachinePhase | None = None
    operation: LastOperation | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    after: float | None = None
    gives_up: bool = False
    """The new phase is Failed, and others of the group must not be given up meanwhile."""
    replaceable: Replaceable | None = None
    """What the machine is to show of whether it may be given up, if it does not yet."""
    components_awaited: bool | None = None
    """Whether the machine is to say that it waits for critical components; None: as it does."""

    @property
    def changes_something(self) -> bool:
        wanted = (self.phase, self.conditions, self.replaceable, self.components_awaited)
        return any(w is not None for w in wanted)


def decide(
    machine: Machine,
    node: Node | None,
    settings: MachineSettings,
    now: datetime,
    *,
    may_fail: Callable[[], bool],
    servers: Reachability,
    verdict: Verdict = ALLOWED,
    born: datetime | None = None,
) -> HealthDecision:
    """Decide about a machine that has a Node's name and a phase.

    ``born``: when it was made by a clock that has gone like ``now`` since; its own timestamp if
    None.

    ``may_fail`` is asked only if the machine would be given up (:mod:`.failure_permit`),
    ``verdict`` is what meltdown protection says of it (:mod:`.meltdown`).
    """
    born = born or machine.metadata.creation_timestamp or now
    if node is None:
        change = _node_missing(machine)
    else:
        change = _from_node(machine, node, settings, now, born)
    if change is not None and change.changes_something:
        return change
    by_clock = _against_the_clock(
        machine,
        node,
        settings,
        now,
        may_fail=may_fail,
        servers=servers,
        verdict=verdict,
        born=born,
    )
    return by_clock if change is None else _sooner(by_clock, change)


def _sooner(one: HealthDecision, other: HealthDecision) -> HealthDecision:
    waits = [d.after for d in (one, other) if d.after is not None]
    return replace(one, after=min(waits, default=None))


def _node_missing(machine: Machine) -> HealthDecision | None:
    if machine.phase != MachinePhase.RUNNING or not of_node(machine.status.conditions):
        return None
    return HealthDecision(
        phase=MachinePhase.UNKNOWN, operation=last_operation.node_missing(machine.metadata.name)
    )


def _from_node(
    machine: Machine, node: Node, settings: MachineSettings, now: datetime, born: datetime
) -> HealthDecision | None:
    conditions = node.status.conditions
    differ = conditions_differ(machine.status.conditions, conditions)
    healthy = is_healthy(conditions, settings.node_conditions)
    phase = _phase_for(machine, node, healthy=healthy)
    if phase is MachinePhase.RUNNING:
        done = _joined(machine, now)
    elif phase is MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL:
        done = last_operation.in_place_updated(machine.metadata.name)
    elif phase is MachinePhase.UNKNOWN:
        done = last_operation.unhealthy(
            machine.metadata.name, describe_trouble(conditions, settings.node_conditions)
        )
    elif critical_components.is_told_wrongly(machine, node):
        return HealthDecision(conditions=conditions if differ else None, components_awaited=False)
    elif (
        left := critical_components.seconds_until_told(
            machine, node, healthy=healthy, born=born, now=now
        )
    ) == 0:
        return HealthDecision(conditions=conditions if differ else None, components_awaited=True)
    elif not differ or _is_unsettled(machine, conditions, settings):
        return HealthDecision(after=left)
    else:
        return HealthDecision(conditions=conditions)
    return HealthDecision(phase=phase, operation=done, conditions=conditions if differ else None)


def _phase_for(machine: Machine, node: Node, *, healthy: bool) -> MachinePhase | None:
    if machine.phase in _IN_PLACE:
        return None
    if not healthy:
        return MachinePhase.UNKNOWN if machine.phase in _TENDED else None
    if machine.phase == MachinePhase.RUNNING or not is_initialized(machine):
        return None
    if _has_yet_to_join(machine) and critical_components.are_awaited(node):
        return None
    return _phase_once_healthy(machine, node)


def _has_yet_to_join(machine: Machine) -> bool:
    """Tell whether it is joining, or was given up as it did not."""
    last = machine.status.last_operation
    gave_up = (last.type, last.state) == (OperationType.CREATE, OperationState.FAILED)
    return machine.phase == MachinePhase.PENDING or (
        machine.phase == MachinePhase.FAILED and gave_up
    )


def _phase_once_healthy(machine: Machine, node: Node) -> MachinePhase | None:
    if machine.phase not in _AFTER_AN_UPDATE:
        return MachinePhase.RUNNING
    marks, updated = marks_of(node), MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL
    if marks.awaits_hand_over:
        return None if machine.phase == updated else updated
    if machine.phase == MachinePhase.FAILED and marks.in_doubt:
        return None  # given up as its update failed: a Node that is well is no objection
    return MachinePhase.RUNNING


def _is_unsettled(
    machine: Machine, conditions: Sequence[NodeCondition], settings: MachineSettings
) -> bool:
    """While a machine joins, only what is wrong beyond "not ready yet" is worth a write."""
    if machine.phase != MachinePhase.PENDING:
        return False
    return not any(
        is_trouble(c, settings.node_conditions)
        for c in of_node(conditions)
        if c.type != CONDITION_NODE_READY
    )


def _joined(machine: Machine, now: datetime) -> LastOperation:
    name, last = machine.metadata.name, machine.status.last_operation
    creating = last.type == OperationType.CREATE and last.state != OperationState.SUCCESSFUL
    # Its VM may have been updated while it joined, which is another last operation.
    if creating or machine.phase == MachinePhase.PENDING:
        took = now - (machine.metadata.creation_timestamp or now)
        whole = timedelta(seconds=max(0, round(took.total_seconds())))
        return last_operation.joined(name, format_duration(whole))
    return last_operation.rejoined(name)


def _against_the_clock(
    machine: Machine,
    node: Node | None,
    settings: MachineSettings,
    now: datetime,
    *,
    may_fail: Callable[[], bool],
    servers: Reachability,
    verdict: Verdict,
    born: datetime,
) -> HealthDecision:
    hold = held_by(servers, verdict)
    if hold is None and servers.reachable and is_held(machine):
        return HealthDecision(replaceable=RESUMED)
    limit = _limit_of(machine, settings, now, born)
    if limit is None:
        return HealthDecision()
    start, span = limit
    start = timeout_start(machine, start, servers=servers, verdict=verdict)
    left = (start + span - now).total_seconds()
    if left > 0:
        return HealthDecision(after=left)
    if hold is not None:
        return HealthDecision(replaceable=None if is_shown(machine, hold) else hold)
    if not servers.reachable:
        return HealthDecision()
    return _given_up(machine, node, span, settings.node_conditions, may_fail=may_fail)


def _limit_of(
    machine: Machine, settings: MachineSettings, now: datetime, born: datetime
) -> tuple[datetime, timedelta] | None:
    """Return when the clock of this phase started, and how long it may run."""
    if machine.phase == MachinePhase.PENDING:
        return born, settings.creation_timeout
    if machine.phase in (MachinePhase.UNKNOWN, MachinePhase.IN_PLACE_UPDATE_FAILED):
        if settings.health_timeout is None:
            return None
        return _unhealthy_since(machine) or now, settings.health_timeout
    return None


def _unhealthy_since(machine: Machine) -> datetime | None:
    """The phase has a time, unless somebody else wrote it: then the next best one counts."""
    found = machine.status
    ready = next((c for c in found.conditions if c.type == CONDITION_NODE_READY), None)
    return (
        found.current_status.last_update_time
        or found.last_operation.last_update_time
        or (ready.last_transition_time if ready is not None else None)
        or machine.metadata.creation_timestamp
    )


def _given_up(
    machine: Machine,
    node: Node | None,
    span: timedelta,
    listed: frozenset[str],
    *,
    may_fail: Callable[[], bool],
) -> HealthDecision:
    name, kind = machine.metadata.name, machine.status.last_operation.type
    conditions = node.status.conditions if node else of_node(machine.status.conditions)
    differ = conditions_differ(machine.status.conditions, conditions)
    if machine.phase == MachinePhase.PENDING:
        kind = OperationType.CREATE if kind == OperationType.UPDATE else kind
        return HealthDecision(
            phase=MachinePhase.FAILED,
            operation=last_operation.join_timed_out(name, format_duration(span), kind=kind),
            conditions=conditions if differ else None,
        )
    if not may_fail():
        return HealthDecision()
    done = last_operation.health_timed_out(
        name, format_duration(span), describe_trouble(conditions, listed), kind=kind
    )
    return HealthDecision(
        phase=MachinePhase.FAILED,
        operation=done,
        conditions=conditions if differ else None,
        gives_up=True,
    )
