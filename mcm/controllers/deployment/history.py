"""How many old sets are kept to roll back to."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.machine import MachineSet
from mcm.controllers.deployment.revision import by_age


def expendable(old_sets: Sequence[MachineSet], limit: int | None) -> Sequence[MachineSet]:
    """Return the old sets to delete: the oldest beyond ``limit``, if they are empty.

    One that still has machines, or news to take in, is skipped and no other goes in its place.
    Without a limit all are kept.
    """
    if limit is None:
        return ()
    kept = [s for s in old_sets if s.metadata.deletion_timestamp is None]
    excess = by_age(kept)[: max(0, len(kept) - limit)]
    return tuple(s for s in excess if _is_empty(s))


def _is_empty(machine_set: MachineSet) -> bool:
    return (
        machine_set.spec.replicas == 0
        and machine_set.status.replicas == 0
        and machine_set.metadata.generation <= machine_set.status.observed_generation
    )
