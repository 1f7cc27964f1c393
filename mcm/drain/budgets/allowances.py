"""How many more pods may be asked to leave: allowances that a pass uses up while it is planned.

What a budget's status allows, less what is under way, is shared by all pods of a pass in the order
in which they ask: with 1 of 3 allowed exactly one gets it, with 0 none.
"""

from __future__ import annotations

from typing import final

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.drain.budgets.disruptions import Disruptions
from mcm.drain.budgets.obstacles import Obstacle, ObstacleKind, is_unprocessed
from mcm.drain.budgets.view import BudgetView, allowed_by


@final
class Allowances:
    """The allowances of one pass.

    ``now`` is monotonic. ``observed``: the mirror of budgets is believed to be current; where it
    is not, and where a budget's status is not yet of its spec, the server is asked instead, by one
    pod at a time. ``checked``: the server itself will check; where it does not (there is no
    eviction API), only what is certain counts, and several budgets must all agree.
    """

    def __init__(
        self,
        disruptions: Disruptions,
        *,
        now: float,
        observed: bool = True,
        checked: bool = True,
    ) -> None:
        self._disruptions = disruptions
        self._now = now
        self._observed = observed
        self._checked = checked
        self._taken: dict[str, int] = {}

    def take(self, pod: Pod, view: BudgetView) -> bool:
        """Use up what the pod's eviction needs, if it is there; tell whether it may be asked."""
        if not view.needs_allowance:
            return True
        if self.obstacle(view) is not None:
            return False
        if not all(self._left(budget, pod.metadata.uid) > 0 for budget in view.budgets):
            return False
        for budget in view.budgets:
            key = budget.metadata.key
            self._taken[key] = self._taken.get(key, 0) + 1
        return True

    def obstacle(self, view: BudgetView) -> Obstacle | None:
        """Return why the pod can never be asked, as far as that is certain."""
        found = view.obstacle
        if found is None or not self._observed:
            return None
        if found.kind is ObstacleKind.SEVERAL_BUDGETS and not self._checked:
            return None
        return found

    def wait(self, view: BudgetView) -> float | None:
        """Return the seconds after which a pod that got nothing may get it by time alone; None:
        something must happen to pods or budgets first."""
        if not view.needs_allowance or self.obstacle(view) is not None:
            return None
        moments: list[float] = []
        for budget in view.budgets:
            if (until := self._disruptions.refused_until(budget)) > self._now:
                moments.append(until)
            if (outdated := self._disruptions.outdated_at(budget)) is not None:
                moments.append(outdated)
        return max(0.0, min(moments) - self._now) if moments else None

    def _left(self, budget: PodDisruptionBudget, uid: str) -> int:
        if self._disruptions.refused_until(budget) > self._now:
            return 0
        if is_unprocessed(budget) or not self._observed:
            allowed = 1 if self._checked else 0
        else:
            allowed = allowed_by(budget)
        under_way = self._disruptions.under_way(budget, self._now, but=uid)
        return allowed - under_way - self._taken.get(budget.metadata.key, 0)
