"""What the members of a surge pool may take together, and what is left of it for one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import msgspec

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import MachineDeploymentSpec
from mcm.api.names import STRATEGY_RECREATE
from mcm.api.strategies import surge_of, unavailable_of
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.surge_pool.usage import Usage


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """The pool's ``surge`` and ``unavailable``, of the ``replicas`` of all members.

    ``declared`` are the different pairs of numbers that members name. ``allows_nothing``: both came
    to 0, and ``unavailable`` counts as 1.
    """

    replicas: int
    surge: int
    unavailable: int
    declared: tuple[tuple[int, int], ...] = ()
    allows_nothing: bool = False


@final
@dataclass(frozen=True, slots=True)
class Share:
    """What one member may take now: its ``bounds``, and those it had if it were ``alone``.

    ``users`` are the members who take part of the budget, or go on before this one.
    """

    bounds: Bounds
    alone: Bounds
    users: tuple[str, ...] = ()


def budget_of(specs: Iterable[MachineDeploymentSpec], replicas: int) -> Budget:
    """Resolve what the members' specs, all valid, declare of ``replicas``, the sum of theirs.

    The smallest surge counts, and the smallest unavailable. Both 0 would never let anything be
    replaced. Recreate declares no numbers.
    """
    numbered = [s for s in specs if defaulted_strategy(s).type != STRATEGY_RECREATE]
    pooled = [msgspec.structs.replace(s, replicas=replicas) for s in numbered]
    declared = sorted({(surge_of(s), unavailable_of(s)) for s in pooled})
    surge = min((s for s, _ in declared), default=0)
    unavailable = min((u for _, u in declared), default=0)
    nothing = surge == 0 and unavailable == 0
    return Budget(
        replicas=replicas,
        surge=surge,
        unavailable=1 if nothing else unavailable,
        declared=tuple(declared),
        allows_nothing=nothing and bool(declared),
    )


def share_of(budget: Budget, me: Usage, others: Sequence[Usage]) -> Share:
    """Return what is left for ``me``.

    Whoever is in the middle of an update goes on first: as long as another one is, ``me`` does not
    begin. Whoever takes part of the budget has begun, and could be what all others wait for. What
    ``me`` lacks already is its own to mend: machines that do not serve may be replaced, as many at
    a time as the pool allows, whatever others lack.
    """
    ahead = me.idle and any(other.updating for other in others)
    surge = 0 if ahead else budget.surge - sum(other.over for other in others)
    unavailable = 0 if ahead else budget.unavailable - sum(other.missing for other in others)
    mine = min(budget.unavailable, me.missing)
    return Share(
        bounds=_bounds(me, surge, max(unavailable, mine)),
        alone=_bounds(me, budget.surge, budget.unavailable),
        users=tuple(sorted(other.name for other in others if not other.idle)),
    )


def _bounds(me: Usage, surge: int, unavailable: int) -> Bounds:
    return Bounds(me.desired, surge=max(0, surge), unavailable=min(max(0, unavailable), me.desired))
