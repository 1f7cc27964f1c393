"""What disruption budgets have to say about a pod: may it go, may it ever, or is nobody sure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.api.selectors import matches


@final
@dataclass(frozen=True, slots=True)
class BudgetView:
    """The budgets of one pod. ``versions`` tell one state of them from another."""

    names: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    allows: bool = True
    """Every one of them has a disruption left, as far as their statuses tell."""
    obstacle: str = ""
    """Why the pod cannot be evicted however long one waits; empty if it can."""


def view_for(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> BudgetView:
    """Look at the budgets of ``pod``'s namespace that select it."""
    found = sorted(
        (b for b in budgets if matches(b.spec.selector, pod.metadata.labels)),
        key=lambda budget: budget.metadata.name,
    )
    if not found:
        return BudgetView()
    return BudgetView(
        names=tuple(b.metadata.key for b in found),
        versions=tuple(f"{b.metadata.key}@{b.metadata.resource_version}" for b in found),
        allows=all(b.status.disruptions_allowed > 0 for b in found),
        obstacle=_obstacle(found),
    )


def is_misconfigured(budget: PodDisruptionBudget) -> bool:
    """Tell whether the budget allows no voluntary eviction even though all its pods are well."""
    status = budget.status
    return (
        budget.metadata.generation == status.observed_generation
        and status.expected_pods > 0
        and status.current_healthy >= status.expected_pods
        and not status.disrupted_pods
        and status.disruptions_allowed == 0
    )


def _obstacle(budgets: Sequence[PodDisruptionBudget]) -> str:
    for budget in budgets:
        if is_misconfigured(budget):
            # Other programs look for this phrase, and for the name before it.
            return (
                f"pod disruption budget {budget.metadata.key} is misconfigured and requires zero "
                "voluntary evictions"
            )
    if len(budgets) > 1:
        names = ", ".join(b.metadata.key for b in budgets)
        return f"several pod disruption budgets select it, which eviction does not support: {names}"
    return ""
