"""How many machines a deployment may have, and how many must serve, while its sets change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import MachineDeploymentSpec
from mcm.api.names import STRATEGY_ROLLING_UPDATE


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """``desired`` machines, ``surge`` more for a while, ``unavailable`` fewer serving."""

    desired: int
    surge: int = 0
    unavailable: int = 0

    @property
    def most(self) -> int:
        """The most machines there may be; none at all where none are desired."""
        return self.desired + self.surge if self.desired else 0

    @property
    def least(self) -> int:
        """The fewest that must serve."""
        return max(0, self.desired - self.unavailable)


def limits_of(spec: MachineDeploymentSpec) -> Limits:
    """Resolve the strategy's numbers, of a spec that is valid.

    Percentages are of ``spec.replicas``, rounded up for surge and down for unavailable. Both zero
    would never let anything be replaced, so one may be unavailable then. Other strategies than
    RollingUpdate have no surge.
    """
    strategy, desired = defaulted_strategy(spec), max(0, spec.replicas)
    block = strategy.rolling_update
    if strategy.type != STRATEGY_ROLLING_UPDATE or block is None:
        return Limits(desired)
    surge = _share(block.max_surge, desired, round_up=True)
    unavailable = _share(block.max_unavailable, desired, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(desired, surge=surge, unavailable=min(unavailable, desired))


def _share(value: int | str | None, of: int, *, round_up: bool) -> int:
    if isinstance(value, int):
        return value
    hundredths = int((value or "0%").removesuffix("%")) * of
    return -(-hundredths // 100) if round_up else hundredths // 100
