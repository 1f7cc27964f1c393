"""What disruption budgets have to say about a pod: may it go, may it ever, or is nobody sure.

The rules are the API server's (``pods/eviction``): who serves nobody needs no budget's leave, nor
does one that is not Ready where its budget's policy says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.api.selectors import complaint_in, matches
from mcm.drain.budgets.obstacles import Obstacle, is_unprocessed, obstacle_of
from mcm.drain.pods import is_ready

_SERVES_NOBODY: Final = frozenset({"Pending", "Succeeded", "Failed"})
_ALWAYS_ALLOW: Final = "AlwaysAllow"


@final
@dataclass(frozen=True, slots=True)
class BudgetView:
    """The budgets that select one pod, in the order of their names."""

    budgets: tuple[PodDisruptionBudget, ...] = ()
    needs_allowance: bool = False
    """To evict it uses up a disruption of its budget; without one the server refuses."""
    obstacle: Obstacle | None = None
    """Why the pod cannot be evicted however long one waits."""
    ignored: tuple[str, ...] = ()
    """Budgets of its namespace whose selector is invalid, each with what is wrong: the server
    takes them to select nothing."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(b.metadata.key for b in self.budgets)

    @property
    def versions(self) -> tuple[str, ...]:
        """Tell one state of the budgets from another."""
        return tuple(f"{b.metadata.key}@{b.metadata.resource_version}" for b in self.budgets)

    @property
    def unprocessed(self) -> bool:
        """A budget's status is not yet of its spec: nothing can be concluded from it."""
        return self.needs_allowance and any(map(is_unprocessed, self.budgets))

    @property
    def allows(self) -> bool:
        """Every one of them has a disruption left, as far as their statuses tell."""
        return not self.needs_allowance or all(map(allowed_by, self.budgets))

    @property
    def why_held(self) -> str:
        """Say which budgets hold the pod, and with which numbers; empty if none does."""
        if self.obstacle is not None:
            return self.obstacle.text
        if not self.needs_allowance:
            return ""
        held = "; ".join(_numbers(b) for b in self.budgets)
        return f"held back by pod disruption budget {held}"


def view_for(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> BudgetView:
    """Look at the budgets of ``pod``'s namespace."""
    found: list[PodDisruptionBudget] = []
    ignored: list[str] = []
    for budget in budgets:
        if complaint := complaint_in(budget.spec.selector):
            ignored.append(f"{budget.metadata.key}: {complaint}")
        elif matches(budget.spec.selector, pod.metadata.labels):
            found.append(budget)
    found.sort(key=lambda budget: budget.metadata.name)
    needs_allowance = bool(found) and not _goes_without(pod, found)
    return BudgetView(
        budgets=tuple(found),
        needs_allowance=needs_allowance,
        obstacle=obstacle_of(found) if needs_allowance else None,
        ignored=tuple(sorted(ignored)),
    )


def allowed_by(budget: PodDisruptionBudget) -> int:
    """Return how many disruptions the status allows; 0 if it is not of the spec as it is now."""
    return 0 if is_unprocessed(budget) else max(0, budget.status.disruptions_allowed)


def _goes_without(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> bool:
    """Tell whether the server lets ``pod`` go without looking how much its budgets allow."""
    if pod.metadata.deletion_timestamp is not None or pod.status.phase in _SERVES_NOBODY:
        return True
    # Of several budgets the server does not ask the policy: it gives up before.
    return len(budgets) == 1 and not is_ready(pod) and _frees_broken_pods(budgets[0])


def _frees_broken_pods(budget: PodDisruptionBudget) -> bool:
    if budget.spec.unhealthy_pod_eviction_policy == _ALWAYS_ALLOW:
        return True
    # What is not said is IfHealthyBudget: enough others are healthy, so nothing is disrupted.
    return 0 < budget.status.desired_healthy <= budget.status.current_healthy


def _numbers(budget: PodDisruptionBudget) -> str:
    if is_unprocessed(budget):
        return f"{budget.metadata.key} (its status is not yet of its spec)"
    status = budget.status
    return (
        f"{budget.metadata.key} (allows {status.disruptions_allowed} disruptions: "
        f"{status.current_healthy} healthy pods, {status.desired_healthy} needed)"
    )
