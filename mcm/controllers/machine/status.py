"""Status writes: new statuses from old ones, the patch between two, and which to leave out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from mcm.api.core import NodeAddress, NodeCondition
from mcm.api.machine import CurrentStatus, LastOperation, Machine, MachinePhase, MachineStatus
from mcm.api.meta import JSONObject
from mcm.api.patches import merge_diff
from mcm.api.timestamps import whole_seconds
from mcm.controllers.machine.last_operation import marker_in
from mcm.controllers.machine.own_conditions import of_node, own
from mcm.controllers.preconditions import for_this_version
from mcm.wording import essence

REPETITION_WINDOW = timedelta(minutes=30)
"""A failure that keeps being the same is written once in this time."""

_TIMED = (
    MachinePhase.AVAILABLE,
    MachinePhase.RUNNING,
    MachinePhase.UNKNOWN,
    MachinePhase.IN_PLACE_UPDATING,
    MachinePhase.IN_PLACE_UPDATE_FAILED,
)
"""Phases whose ``lastUpdateTime`` says since when: that something may last so long, or must have
lasted (``minReadySeconds``), is counted from it."""


def with_operation(status: MachineStatus, done: LastOperation, now: datetime) -> MachineStatus:
    """Record ``done`` at ``now``."""
    stamped = msgspec.structs.replace(done, last_update_time=whole_seconds(now))
    return msgspec.structs.replace(status, last_operation=stamped)


def with_phase(
    status: MachineStatus, phase: MachinePhase, now: datetime, *, timeout_active: bool = False
) -> MachineStatus:
    """Enter ``phase`` at ``now``. A preservation's end is kept but for a machine that goes."""
    expiry = status.current_status.preserve_expiry_time
    current = CurrentStatus(
        phase=phase,
        timeout_active=timeout_active,
        last_update_time=whole_seconds(now),
        preserve_expiry_time=None if phase is MachinePhase.TERMINATING else expiry,
    )
    return msgspec.structs.replace(status, current_status=current)


def with_preservation(
    status: MachineStatus, until: datetime | None, now: datetime
) -> MachineStatus:
    """Keep the machine ``until`` then; None: no longer. A clock of its phase goes on as it was."""
    current = status.current_status
    if current.preserve_expiry_time == until:
        return status
    since = current.last_update_time
    if current.phase not in _TIMED or since is None:
        since = whole_seconds(now)
    changed = msgspec.structs.replace(current, preserve_expiry_time=until, last_update_time=since)
    return msgspec.structs.replace(status, current_status=changed)


def with_conditions(status: MachineStatus, conditions: Sequence[NodeCondition]) -> MachineStatus:
    """Copy a Node's conditions; the machine's own stay."""
    copied = (*of_node(conditions), *own(status.conditions))
    return msgspec.structs.replace(status, conditions=copied)


def with_known_state(status: MachineStatus, state: str) -> MachineStatus:
    return msgspec.structs.replace(status, last_known_state=state)


def with_addresses(status: MachineStatus, found: Sequence[NodeAddress]) -> MachineStatus:
    """Add addresses; those known stay. Sorted, so that the same set is the same text."""
    union = {(a.type, a.address): a for a in (*status.addresses, *found)}
    return msgspec.structs.replace(status, addresses=tuple(union[key] for key in sorted(union)))


def patch_of(machine: Machine, wanted: MachineStatus) -> JSONObject | None:
    """Return the merge patch that makes ``machine``'s status ``wanted``; None if it is.

    It applies to the version seen and no other: on a status subresource servers ignore the UID, so
    nothing less keeps it off another machine of the same name.
    """
    difference = merge_diff(msgspec.to_builtins(machine.status), msgspec.to_builtins(wanted))
    if not difference:
        return None
    return for_this_version(machine.metadata, {"status": difference})


def is_repetition(old: MachineStatus, new: MachineStatus) -> bool:
    """Tell whether writing ``new`` would say nothing that ``old`` does not say already.

    Times, and numbers and identifiers inside descriptions, do not count. State, type, code, phase,
    marker and last known state do, and what was said long ago is worth saying again.
    """
    before, after = old.last_operation, new.last_operation
    if before.last_update_time is None or after.last_update_time is None:
        return False
    if after.last_update_time - before.last_update_time >= REPETITION_WINDOW:
        return False
    return _essence(old) == _essence(new)


def _essence(status: MachineStatus) -> MachineStatus:
    done, current = status.last_operation, status.current_status
    marker = marker_in(done.description) or ""
    return msgspec.structs.replace(
        status,
        last_operation=msgspec.structs.replace(
            done,
            last_update_time=None,
            description=f"{marker}|{essence(done.description)}",
        ),
        current_status=msgspec.structs.replace(current, last_update_time=None),
    )
