"""The condition ``OrphanedMachines``: machines run, and cost money, that nobody looks after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from mcm.api.machine import Machine
from mcm.api.names import CONDITION_ORPHANED_MACHINES, REASON_NO_SET_ADOPTS, STATUS_TRUE
from mcm.controllers.conditions import without
from mcm.controllers.deployment.conditions import Conditions, with_text
from mcm.wording import first_few

_NAMED: Final = 3


def with_orphans(
    conditions: Conditions, orphans: Sequence[Machine] | None, now: datetime
) -> Conditions:
    """Say which machines are ``orphans``, and what ends that; say nothing if none is. What is said
    stays as it is while it is not known yet who will be (None)."""
    if orphans is None:
        return conditions
    if not orphans:
        return without(conditions, CONDITION_ORPHANED_MACHINES)
    kind, reason = CONDITION_ORPHANED_MACHINES, REASON_NO_SET_ADOPTS
    return with_text(conditions, kind, STATUS_TRUE, reason, _text(orphans), now=now)


def _text(orphans: Sequence[Machine]) -> str:
    names = first_few(sorted(m.metadata.name for m in orphans), _NAMED)
    machines = "1 machine matches" if len(orphans) == 1 else f"{len(orphans)} machines match"
    return (
        f"{machines} spec.selector but no machine set owns or will adopt: {names}. They run and "
        "cost money, count for nothing here, and are not replaced. This ends when they are deleted "
        "(kubectl delete machine NAME), or lose a label that spec.selector asks for"
    )
