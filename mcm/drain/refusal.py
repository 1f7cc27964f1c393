"""What an answer that a pod does not go means for its drain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from mcm.drain.budgets import BudgetView
from mcm.drain.execution import Answer, AnswerKind
from mcm.drain.plan.gentle import cause_of
from mcm.drain.result import Cause


@final
@dataclass(frozen=True, slots=True)
class Meaning:
    """``tries_patience``: the pod may not go, rather than that nobody could be asked."""

    cause: Cause
    detail: str
    tries_patience: bool
    is_for_disruptions: bool = False
    """When it may be asked again is known by what its budgets say."""


_CAUSES: Final = {
    AnswerKind.SEVERAL_BUDGETS: Cause.SEVERAL_BUDGETS,
    AnswerKind.NAMESPACE_ENDS: Cause.NAMESPACE_ENDS,
}
_TRYING: Final = (
    AnswerKind.SEVERAL_BUDGETS,
    AnswerKind.NAMESPACE_ENDS,
    AnswerKind.FORBIDDEN,
)


def meaning_of(answer: Answer, view: BudgetView | None = None) -> Meaning:
    """Say what ``answer``, by which the pod does not go, means; ``view`` is of its budgets."""
    view = view or BudgetView()
    if answer.kind is AnswerKind.HELD_BY_BUDGET:
        return Meaning(
            cause_of(view.obstacle), view.why_held or answer.text, True, view.needs_allowance
        )
    if answer.kind is AnswerKind.SEVERAL_BUDGETS and view.obstacle is not None:
        return Meaning(Cause.SEVERAL_BUDGETS, view.obstacle.text, True)
    cause = _CAUSES.get(answer.kind, Cause.REFUSED)
    return Meaning(cause, answer.text, answer.kind in _TRYING)
