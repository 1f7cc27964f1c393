"""What holds a machine whose time is over, what it shows of that, and when its time starts anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

from mcm.api.machine import Machine
from mcm.api.names import STATUS_FALSE, STATUS_TRUE
from mcm.controllers.machine.health.meltdown.protection import Verdict
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.controllers.reachability import Reachability

REASON_TARGET: Final = "TargetClusterUnreachable"


@final
@dataclass(frozen=True, slots=True)
class Replaceable:
    """What a machine is to show under the condition of that name."""

    status: str
    reason: str
    message: str


RESUMED: Final = Replaceable(
    STATUS_TRUE, "HealthTimeoutRestarted", "nothing holds it any more; its timeout started anew"
)


def held_by(servers: Reachability, verdict: Verdict) -> Replaceable | None:
    """Return what a machine whose time is over shows while it must not be given up; None: it may.

    While the control cluster is out of reach nothing can be shown.
    """
    if not servers.reachable and not servers.only_target_lost:
        return None
    if servers.only_target_lost:
        return Replaceable(
            STATUS_FALSE,
            REASON_TARGET,
            "the target cluster cannot be observed, so no machine is given up",
        )
    if verdict.held:
        return Replaceable(STATUS_FALSE, verdict.reason, verdict.message)
    return None


def is_shown(machine: Machine, hold: Replaceable) -> bool:
    """Tell whether the machine shows this. Numbers in the message are those of when it was held."""
    shown = find_own(machine.status, OwnCondition.REPLACEABLE)
    return shown is not None and (shown.status, shown.reason) == (hold.status, hold.reason)


def timeout_start(
    machine: Machine, start: datetime, *, servers: Reachability, verdict: Verdict
) -> datetime:
    """Return when the machine's timeout started that would have by ``start``: later, if nobody
    could observe or nobody was given up meanwhile."""
    shown = find_own(machine.status, OwnCondition.REPLACEABLE)
    resumed = shown.last_transition_time if shown and shown.status == STATUS_TRUE else None
    restarts = (servers.restored_at, verdict.clocks_from, resumed)
    return max((start, *(moment for moment in restarts if moment is not None)))
