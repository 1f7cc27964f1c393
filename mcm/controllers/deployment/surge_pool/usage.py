"""How much of a surge pool's budget one of its members takes at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.controllers.deployment.fleet import DeploymentSnapshot, Fleet


@final
@dataclass(frozen=True, slots=True)
class PossibleChanges:
    """What writes that may have happened would make of a deployment: each set's possible sizes by
    its UID, the sizes of sets that may have been created, and how many machines that serve may have
    been selected for their update in place."""

    sizes: tuple[tuple[str, int], ...] = ()
    created: tuple[int, ...] = ()
    selected: int = 0


NOTHING_CLAIMED = PossibleChanges()


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """One member: machines ``over`` its replicas, and ``missing`` ones that should serve.

    ``updating``: it is in the middle of an update that is free to go on, and goes on first.
    """

    name: str
    desired: int
    over: int = 0
    missing: int = 0
    updating: bool = False

    @property
    def idle(self) -> bool:
        """Whether it takes nothing of the budget, and has not begun an update."""
        return not (self.over or self.missing or self.updating)


def usage_in(
    snapshot: DeploymentSnapshot,
    now: datetime,
    *,
    valid: bool,
    claimed: PossibleChanges = NOTHING_CLAIMED,
) -> Usage:
    """Count what the member of ``snapshot`` takes.

    One that is not ``valid`` is not acted on, and is to have what its sets want: its own number may
    be anything.
    """
    deployment, fleet = snapshot.deployment, snapshot.fleet(now)
    return usage_of(
        deployment.metadata.name,
        fleet,
        deployment.spec.replicas if valid else fleet.replicas(),
        updates=valid and not deployment.spec.paused,
        claimed=claimed,
    )


def usage_of(
    name: str,
    fleet: Fleet,
    desired: int,
    *,
    updates: bool,
    claimed: PossibleChanges = NOTHING_CLAIMED,
) -> Usage:
    """Count the worst that may be the case. ``updates``: the member's updates are free to go on.

    Machines that are preserved for inspection cannot serve and stop nobody, as ever.
    """
    present = {s.uid: s.replicas for s in fleet.living}
    largest, smallest = dict(present), dict(present)
    for uid, size in claimed.sizes:
        if uid in present:
            largest[uid] = max(largest[uid], size)
            smallest[uid] = min(smallest[uid], size)
    coming = sum(claimed.created)
    serving = fleet.guaranteed(smallest) - claimed.selected
    return Usage(
        name=name,
        desired=desired,
        over=max(0, fleet.potential(largest) + coming - desired),
        missing=max(0, desired - fleet.preserved - max(0, serving)),
        updating=updates and (_is_in_the_middle(fleet) or coming > 0),
    )


def _is_in_the_middle(fleet: Fleet) -> bool:
    """Whether both templates have replicas, or machines that are still leaving."""
    new, old = fleet.new, fleet.old
    return new is not None and new.replicas > 0 and any(s.replicas or s.machines for s in old)


def total_desired(members: Sequence[Usage]) -> int:
    return sum(member.desired for member in members)
