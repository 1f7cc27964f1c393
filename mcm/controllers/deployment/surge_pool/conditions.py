"""What a member of a surge pool says: that it waits, for whom, and that members' numbers differ."""

from __future__ import annotations

from datetime import datetime

from mcm.api.names import (
    CONDITION_PROGRESSING,
    CONDITION_SURGE_POOL,
    REASON_NUMBERS_DIFFER,
    REASON_WAITS_FOR_POOL,
    STATUS_FALSE,
)
from mcm.controllers.conditions import find, reason_of, without
from mcm.controllers.deployment.conditions import Conditions, with_condition, with_text
from mcm.controllers.deployment.surge_pool.budget import Budget
from mcm.controllers.deployment.surge_pool.turns import Turn


def with_pool(conditions: Conditions, turn: Turn | None, now: datetime) -> Conditions:
    """Return ``conditions`` with what there is to say of the pool, and nothing if there is nothing.

    The time that a member waits is not its own: the deadline for progress starts anew after it.
    """
    waited = reason_of(conditions, CONDITION_SURGE_POOL) == REASON_WAITS_FOR_POOL
    if waited and not (turn and turn.waits):
        conditions = _with_progress_from(now, conditions)
    sentences = _sentences(turn) if turn else ()
    if not turn or not sentences:
        return without(conditions, CONDITION_SURGE_POOL)
    reason = REASON_WAITS_FOR_POOL if turn.waits else REASON_NUMBERS_DIFFER
    text = "; ".join(sentences)
    return with_text(conditions, CONDITION_SURGE_POOL, STATUS_FALSE, reason, text, now=now)


def _sentences(turn: Turn) -> tuple[str, ...]:
    said = []
    if turn.waits:
        said.append(_waiting(turn))
    if len(turn.budget.declared) > 1:
        said.append(_differing(turn.pool, turn.budget))
    return tuple(said)


def _waiting(turn: Turn) -> str:
    names = ", ".join(f'"{name}"' for name in turn.share.users)
    deployments = "deployment" if len(turn.share.users) == 1 else "deployments"
    return f'waits for surge pool "{turn.pool}": its budget is used by {deployments} {names}'


def _differing(pool: str, budget: Budget) -> str:
    return (
        f'the members of surge pool "{pool}" declare different numbers in spec.strategy; the '
        f"smallest count: maxSurge {budget.surge}, maxUnavailable {budget.unavailable}"
    )


def _with_progress_from(now: datetime, conditions: Conditions) -> Conditions:
    present = find(conditions, CONDITION_PROGRESSING)
    if present is None:
        return conditions
    said = (present.status, present.reason, present.message)
    return with_condition(conditions, CONDITION_PROGRESSING, *said, now=now, refresh=True)
