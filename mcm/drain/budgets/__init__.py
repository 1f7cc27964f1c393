"""Disruption budgets as a drain sees them: what they say of a pod, and how much is left of them."""

from __future__ import annotations

from mcm.drain.budgets.allowances import Allowances
from mcm.drain.budgets.disruptions import Disruptions
from mcm.drain.budgets.obstacles import Obstacle, ObstacleKind, is_misconfigured
from mcm.drain.budgets.view import BudgetView, view_for

__all__ = [
    "Allowances",
    "BudgetView",
    "Disruptions",
    "Obstacle",
    "ObstacleKind",
    "is_misconfigured",
    "view_for",
]
