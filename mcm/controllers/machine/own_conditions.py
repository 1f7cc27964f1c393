"""Conditions about the machine itself, kept beside the copies of its Node's in one list.

``status.conditions`` of a machine holds its Node's conditions, for those who read only machines.
What is wrong with the machine itself stands there too, under types that are ours alone: copying the
Node's leaves them as they are, and nobody judges a Node by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from mcm.api.core import NodeCondition
from mcm.api.machine import MachineStatus
from mcm.api.names import CONDITION_DRAINED
from mcm.api.timestamps import whole_seconds
from mcm.controllers.conditions import without


class OwnCondition(StrEnum):
    """The types that are ours. True is the good value of each."""

    NODE_TEMPLATE_APPLIED = "NodeTemplateApplied"
    """False: part of the node template, or of the virtual capacity, cannot be put on the Node."""
    PROVIDER_SPEC_APPLIED = "ProviderSpecApplied"
    """False: its class was changed, and its VM could not be brought to that yet."""
    NODE_UNAMBIGUOUS = "NodeUnambiguous"
    """False: other machines name the same Node, and nothing tells whose it is."""
    CLASS_MIGRATED = "MachineClassMigrated"
    """False: it names a class of a kind there was before MachineClass, which must be replaced."""
    INITIALIZED = "Initialized"
    """False: InitializeMachine is still to be called for its VM."""
    DRAINED = CONDITION_DRAINED
    """False: its Node is being drained, and that takes long, is held up, or was done by force."""
    CRITICAL_COMPONENTS_READY = "CriticalComponentsReady"
    """False: its Node is ready but for a taint that others take off, so it is still Pending."""
    PRESERVATION_APPLIED = "PreservationApplied"
    """False: what is asked for cannot be read, or the Node can be neither marked nor drained."""
    REPLACEABLE = "Replaceable"
    """False: unhealthy for longer than its timeout, and not given up, as too many others are, too,
    or the target cluster cannot be asked. True: no more so, and its timeout started anew."""


_OURS = frozenset(OwnCondition)


def of_node(conditions: Iterable[NodeCondition]) -> tuple[NodeCondition, ...]:
    """Return the conditions that are a Node's. What it reports under a type of ours is left out."""
    return tuple(c for c in conditions if c.type not in _OURS)


def own(conditions: Iterable[NodeCondition]) -> tuple[NodeCondition, ...]:
    """Return the conditions that are the machine's own."""
    return tuple(c for c in conditions if c.type in _OURS)


def find_own(status: MachineStatus, kind: OwnCondition) -> NodeCondition | None:
    return next((c for c in status.conditions if c.type == kind), None)


def with_own(
    status: MachineStatus,
    kind: OwnCondition,
    status_text: str,
    reason: str,
    message: str,
    now: datetime,
) -> MachineStatus:
    """Show one of our conditions. Since when it holds moves only with its status; what stands there
    already is returned as it is."""
    before = find_own(status, kind)
    same = before is not None and before.status == status_text
    since = before.last_transition_time if before is not None and same else None
    condition = NodeCondition(
        type=kind.value,
        status=status_text,
        last_transition_time=since or whole_seconds(now),
        reason=reason,
        message=message,
    )
    if condition == before:
        return status
    changed = tuple(condition if c.type == kind else c for c in status.conditions)
    if before is None:
        changed = (*status.conditions, condition)
    return msgspec.structs.replace(status, conditions=changed)


def without_own(status: MachineStatus, kind: OwnCondition) -> MachineStatus:
    """Take one of our conditions away; the same object if it is not there."""
    if find_own(status, kind) is None:
        return status
    return msgspec.structs.replace(status, conditions=without(status.conditions, kind))
