"""All that one pass knows: a deployment, its sets, their machines, as the stores show them now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import Machine, MachineDeployment, MachineSet
from mcm.api.names import STRATEGY_ROLLING_UPDATE
from mcm.controllers.deployment.fleet import Fleet, state_of
from mcm.controllers.deployment.limits import Limits, limits_of
from mcm.controllers.deployment.revision import new_set_of
from mcm.controllers.deployment.strategy import Decision, decide


@final
@dataclass(frozen=True, slots=True)
class World:
    """``sets`` are all of the deployment's, oldest first, ``new`` is the one of its template;
    ``machines`` go by their set's UID."""

    deployment: MachineDeployment
    sets: Sequence[MachineSet]
    machines: Mapping[str, Sequence[Machine]]
    new: MachineSet | None

    @classmethod
    def of(
        cls,
        deployment: MachineDeployment,
        sets: Sequence[MachineSet],
        machines: Mapping[str, Sequence[Machine]],
    ) -> World:
        return cls(deployment, sets, machines, new_set_of(deployment, sets))

    @property
    def limits(self) -> Limits:
        return limits_of(self.deployment.spec)

    @property
    def strategy(self) -> str:
        return defaulted_strategy(self.deployment.spec).type

    @property
    def steering(self) -> bool:
        """Whether pods should be steered from old machines to new ones."""
        return self.strategy == STRATEGY_ROLLING_UPDATE

    @property
    def old(self) -> Sequence[MachineSet]:
        return tuple(s for s in self.sets if s is not self.new)

    @property
    def updating(self) -> bool:
        """Whether old sets have, or want, machines."""
        return any(s.spec.replicas or self.machines[s.metadata.uid] for s in self.old)

    def fleet(self, now: datetime) -> Fleet:
        states = {
            s.metadata.uid: state_of(s, self.machines[s.metadata.uid], now) for s in self.sets
        }
        old = [states[s.metadata.uid] for s in self.old]
        return Fleet(
            new=states[self.new.metadata.uid] if self.new else None,
            old=tuple(s for s in old if not s.deleted),
            deleted=tuple(s for s in old if s.deleted),
        )

    def decision(self, now: datetime) -> Decision:
        """Return what is to be done next. Raises BrokenPromise."""
        spec = self.deployment.spec
        return decide(self.fleet(now), self.limits, self.strategy, paused=spec.paused)
