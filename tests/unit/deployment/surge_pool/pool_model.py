"""A surge pool as a game: several deployments' models, whose shares are the real ones."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.machine import DeploymentStrategy
from mcm.controllers.deployment.sizes.scaling import asked_for
from mcm.controllers.deployment.surge_pool.budget import Budget, Share, budget_of, share_of
from mcm.controllers.deployment.surge_pool.usage import Usage, usage_of
from tests.unit.deployment.fleet_model import FleetModel


class PoolModel:
    """``over`` is how many machines more than the limit there are because the limit fell.
    ``loosened`` machines more than the pool allows may be taken: what a saboteur changes."""

    def __init__(
        self, replicas: Sequence[int], strategy: DeploymentStrategy, *, loosened: int = 0
    ) -> None:
        self.members = [FleetModel(r, strategy, name=f"z{i}") for i, r in enumerate(replicas)]
        self.loosened = loosened
        self.over = 0

    def usage(self, member: FleetModel) -> Usage:
        spec = member.deployment.spec
        return usage_of(
            member.deployment.metadata.name,
            member.snapshot().fleet(member.now),
            spec.replicas,
            updates=not spec.paused,
        )

    @property
    def budget(self) -> Budget:
        specs = [m.deployment.spec for m in self.members]
        return budget_of(specs, sum(spec.replicas for spec in specs))

    def share(self, member: FleetModel) -> Share:
        others = [self.usage(m) for m in self.members if m is not member]
        budget = self.budget
        if self.loosened:
            budget = Budget(
                budget.replicas, budget.surge + self.loosened, budget.unavailable + self.loosened
            )
        return share_of(budget, self.usage(member), others)

    def acts(self, member: FleetModel) -> None:
        member.deployment_acts(self.share(member).bounds)

    # ---- what is promised ----------------------------------------------------------------------

    @property
    def machines(self) -> int:
        return sum(len(m.machines) for m in self.members)

    @property
    def guaranteed(self) -> int:
        """Those that serve, each member's counted as far as it is to have so many."""
        return sum(min(m.guaranteed, m.deployment.spec.replicas) for m in self.members)

    @property
    def leaving_failures(self) -> int:
        return sum(m.leaving_failures for m in self.members)

    @property
    def most(self) -> int:
        """As many as there may be; none of a surge where nothing is desired."""
        return self.budget.replicas + self.budget.surge

    @property
    def least(self) -> int:
        return max(0, self.budget.replicas - self.budget.unavailable)

    def user_scales(self, member: FleetModel, replicas: int) -> None:
        before = self.most
        member.user_scales(replicas)
        self.over += max(0, before - self.most)

    def settle_excess(self) -> None:
        """What was over the limit, and can be no more, is not over it any more.

        Each member may have as many as it is to have whatever the others have too many.
        """
        fleets = [(m, m.snapshot().fleet(m.now)) for m in self.members]
        if any(asked_for(fleet, m.bounds) for m, fleet in fleets):
            return  # that is granted at once, and may come on top of it
        surplus = sum(max(0, fleet.potential() - m.bounds.desired) for m, fleet in fleets)
        self.over = min(self.over, max(0, surplus - self.leaving_failures - self.budget.surge))

    # ---- convergence ---------------------------------------------------------------------------

    def finish(self, *, passes: int = 400) -> None:
        for _ in range(passes):
            for member in self.members:
                member.converge()
            before = [dict(m.sets) for m in self.members]
            for member in self.members:
                self.acts(member)
            if [m.sets for m in self.members] == before:
                return
        raise AssertionError(f"never settles: {[m.sizes() for m in self.members]}")
