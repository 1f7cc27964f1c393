"""What a surge pool leaves a deployment in a forecast, in which the other members stand still."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import final

from mcm.api.machine import MachineDeployment
from mcm.api.validation import validate_machine_deployment
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.surge_pool.budget import budget_of, share_of
from mcm.controllers.deployment.surge_pool.membership import pool_of
from mcm.controllers.deployment.surge_pool.usage import total_desired, usage_in


@final
class Pool:
    """The pool of ``deployment``, if it names one; ``others`` are further deployments of its
    namespace, members or not, as they are at ``now``."""

    def __init__(
        self,
        deployment: MachineDeployment,
        others: Iterable[DeploymentSnapshot] = (),
        *,
        now: datetime,
    ) -> None:
        self.name = pool_of(deployment)
        members = [o for o in others if self.name and pool_of(o.deployment) == self.name]
        self._specs = [o.deployment.spec for o in members if _is_valid(o.deployment)]
        self._usages = [usage_in(m, now, valid=_is_valid(m.deployment)) for m in members]

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the other members."""
        return tuple(sorted(usage.name for usage in self._usages))

    @property
    def busy(self) -> tuple[str, ...]:
        """The names of those that take part of the budget, or are in the middle of an update."""
        return tuple(sorted(usage.name for usage in self._usages if not usage.idle))

    def bounds(self, snapshot: DeploymentSnapshot, now: datetime) -> Bounds | None:
        """Return what is left for the deployment as it is in ``snapshot``; None: all of its own."""
        if not self.name:
            return None
        me = usage_in(snapshot, now, valid=_is_valid(snapshot.deployment))
        replicas = total_desired((me, *self._usages))
        budget = budget_of([snapshot.deployment.spec, *self._specs], replicas)
        return share_of(budget, me, self._usages).bounds


def _is_valid(deployment: MachineDeployment) -> bool:
    return not validate_machine_deployment(deployment)
