"""How many machines a set lacks, and which ones it must lose: a snapshot in, a plan out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

from mcm.api.machine import Machine, MachineSet
from mcm.api.names import LABEL_SCALE_UP_DISABLED
from mcm.controllers.overshooting.decision import is_frozen
from mcm.controllers.replicas.deletion_order import chosen_by_autoscaler, deletion_order
from mcm.controllers.replicas.membership import is_failed, is_pinned, is_terminating

BURST: Final = 100
_SHARE: Final = 10
"""A large set's passes take a tenth of it: so many passes over all of its machines, however many
those are."""


def burst(machines: int) -> int:
    """Return how many machines one pass creates at most, or deletes, for a set of so many."""
    return max(BURST, machines // _SHARE)


@final
@dataclass(frozen=True, slots=True)
class ScalingPlan:
    """Either machines to create or machines to delete, never both.

    ``withheld`` says why missing machines are not created; ``awaits`` of them may be adopted soon,
    and are not made twice. ``again_at`` is when the protection of a Failed machine ends. ``more``:
    the next pass has as much to do, whatever happens.
    """

    create: int = 0
    delete: tuple[Machine, ...] = ()
    withheld: str = ""
    awaits: int = 0
    again_at: datetime | None = None
    more: bool = False


def plan(
    machine_set: MachineSet,
    machines: Sequence[Machine],
    now: datetime,
    *,
    protected_until: Mapping[str, datetime] | None = None,
    expected: int = 0,
) -> ScalingPlan:
    """Compare what ``machine_set`` wants with the ``machines`` it owns.

    ``protected_until`` names, by machine, the Failed ones that stay until then. ``expected`` more
    may be adopted soon.
    """
    staying = [machine for machine in machines if not is_terminating(machine)]
    missing = machine_set.spec.replicas - len(staying)
    if missing > 0:
        withheld, awaits = _why_withheld(machine_set), min(missing, expected)
        due, most = missing - awaits, burst(machine_set.spec.replicas)
        create, more = (0, False) if withheld else (min(due, most), due > most)
        return ScalingPlan(create=create, withheld=withheld, awaits=awaits, more=more)
    shields = {name: at for name, at in (protected_until or {}).items() if at > now}
    victims = _victims(machine_set, [m for m in staying if not is_pinned(m)], now, shields)
    most = burst(len(machines))
    return ScalingPlan(
        delete=tuple(victims.values())[:most],
        again_at=min(shields.values(), default=None),
        more=len(victims) > most,
    )


def _victims(
    machine_set: MachineSet,
    candidates: Sequence[Machine],
    now: datetime,
    shields: Mapping[str, datetime],
) -> dict[str, Machine]:
    """Those that go in any case first, then what failed; each machine once."""
    failed = (m for m in candidates if is_failed(m) and m.metadata.name not in shields)
    doomed = (*_leaving(machine_set, candidates, now), *failed)
    return {machine.metadata.name: machine for machine in doomed}


def leaving(
    machine_set: MachineSet, machines: Sequence[Machine], now: datetime
) -> Sequence[Machine]:
    """Return the machines that go whatever their state, as the plan has it."""
    staying = [machine for machine in machines if not is_terminating(machine)]
    if len(staying) < machine_set.spec.replicas:
        return ()
    return _leaving(machine_set, [m for m in staying if not is_pinned(m)], now)


def _leaving(
    machine_set: MachineSet, candidates: Sequence[Machine], now: datetime
) -> Sequence[Machine]:
    """Surplus first, then what the autoscaler chose."""
    surplus = len(candidates) - machine_set.spec.replicas
    chosen = deletion_order(candidates, now)[:surplus] if surplus > 0 else []
    return (*chosen, *chosen_by_autoscaler(machine_set, candidates))


def _why_withheld(machine_set: MachineSet) -> str:
    if is_frozen(machine_set.metadata):
        return "the set is frozen"
    if LABEL_SCALE_UP_DISABLED in machine_set.metadata.labels:
        return "the set is being updated in place"
    return ""
