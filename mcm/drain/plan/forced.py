"""A forced pass: every pod is deleted at once, and nothing is waited for."""

from __future__ import annotations

from mcm.drain.execution import Action, Verb
from mcm.drain.plan.situation import PassPlan, Situation


def plan_by_force(situation: Situation) -> PassPlan:
    """Plan to delete all that the drain would have waited for."""
    # Grace zero says "the processes are gone": only true where no kubelet runs them any more.
    grace = 0 if situation.mode.kubelet_dead else 1
    pods = situation.arrangement.by_force
    return PassPlan(
        actions=tuple(Action(Verb.DELETE, pod, grace) for pod in pods),
        record=situation.record,
    )
