"""Budgets that let a pod go never, however long one waits: which, why, and what would mend it.

Two rules find a budget that is misconfigured: its status, as soon as it refuses although all its
pods are well (the rule of the Go original), and its spec, as soon as that can never allow any
disruption. Of a status that is not yet of the spec nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, final

from mcm.api.core import PodDisruptionBudget

_ALL: Final = 100
"""Percent."""


class ObstacleKind(Enum):
    MISCONFIGURED = auto()
    SEVERAL_BUDGETS = auto()


@final
@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a pod cannot be evicted. It lasts until people change something."""

    kind: ObstacleKind
    text: str
    """Names the budgets, and what mends it."""


def obstacle_of(budgets: Sequence[PodDisruptionBudget]) -> Obstacle | None:
    """Find what keeps a pod, one of those that ``budgets`` protect, from ever being evicted."""
    misconfigured = [
        text for budget in budgets if (text := misconfiguration(budget, among=len(budgets)))
    ]
    if len(budgets) < 2:
        return Obstacle(ObstacleKind.MISCONFIGURED, misconfigured[0]) if misconfigured else None
    # The server answers 500 to the eviction of such a pod, whatever the budgets allow.
    names = ", ".join(b.metadata.key for b in budgets)
    several = (
        f"several pod disruption budgets select it, which eviction does not support: {names}; "
        "let all but one of them select other pods"
    )
    if misconfigured:
        return Obstacle(ObstacleKind.MISCONFIGURED, "; ".join((*misconfigured, several)))
    return Obstacle(ObstacleKind.SEVERAL_BUDGETS, several)


def misconfiguration(budget: PodDisruptionBudget, *, among: int = 1) -> str:
    """Say why the budget allows no disruption ever; empty if it may allow one some time.

    ``among`` how many budgets of one pod it is.
    """
    if is_unprocessed(budget) or budget.status.disruptions_allowed > 0:
        return ""
    because = _impossible(budget)
    if not because and not is_misconfigured(budget):
        return ""
    # Other programs look for this phrase, and for the name before it.
    text = (
        f"pod disruption budget {budget.metadata.key} is misconfigured and requires zero "
        "voluntary evictions"
    )
    status = budget.status
    because = because or (
        f"all {status.current_healthy} of its pods are healthy, {status.desired_healthy} are "
        "needed, and none may go; lower what it needs, or add replicas"
    )
    return f"{text}: {because}" if among == 1 else text


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


def is_unprocessed(budget: PodDisruptionBudget) -> bool:
    """Tell whether the status is that of an older spec: the server refuses all evictions then."""
    return budget.status.observed_generation < budget.metadata.generation


def _impossible(budget: PodDisruptionBudget) -> str:
    """Say what in the spec forbids every disruption; empty if nothing does."""
    spec, expected = budget.spec, budget.status.expected_pods
    if spec.max_unavailable is not None:
        if _number(spec.max_unavailable, of=_ALL) != 0:
            return ""
        return f"maxUnavailable is {spec.max_unavailable}; raise it"
    least = spec.min_available
    if least is None or expected <= 0:
        return ""
    needed = _number(least, of=expected)
    if needed is None or needed < expected:
        return ""
    pods = "1 pod" if expected == 1 else f"{expected} pods"
    return f"minAvailable is {least}, and it has {pods}; lower it, or add replicas"


def _number(value: int | str, *, of: int) -> int | None:
    """Return what a number or percentage means; percentages round up. None: it is neither."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not digits.isdecimal():
        return None
    return -(-int(digits) * of // _ALL)
