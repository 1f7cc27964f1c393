"""Disruption budgets as a drain sees them: what they say of a pod, and how much is left of them."""

from __future__ import annotations

from mcm.drain.budgets.view import BudgetView, is_misconfigured, view_for

__all__ = ["BudgetView", "is_misconfigured", "view_for"]
