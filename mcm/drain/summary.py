"""The pods that a drain waits for, in words: grouped by cause, the worst first, cut short.

The text is the same as long as the same pods stand as they do, in whatever order they come: it is
written on objects, where a repetition costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from mcm.api.timestamps import rfc3339
from mcm.drain.result import Cause, PodStanding
from mcm.wording import first_few

MOST_CAUSES: Final = 5
MOST_PODS: Final = 3
_LONGEST_DETAIL: Final = 240

WORST_FIRST: Final = (
    Cause.BUDGET_MISCONFIGURED,
    Cause.SEVERAL_BUDGETS,
    Cause.REFUSED,
    Cause.OVERDUE,
    Cause.HELD_BY_BUDGET,
    Cause.SERVER_BUSY,
    Cause.NAMESPACE_ENDS,
    Cause.DETACHING,
    Cause.REATTACHING,
    Cause.AWAITING_SUCCESSOR,
    Cause.AWAITING_COMPLETION,
    Cause.LEAVING,
    Cause.AWAITING_LANE,
    Cause.AWAITING_WAVE,
)
"""Every cause: first what people have to mend, last what only follows from others."""

_DELETED_AT: Final = "deleted at"
_NOT_AWAITED: Final = "not waited for after"
_END: Final = {
    Cause.BUDGET_MISCONFIGURED: _DELETED_AT,
    Cause.SEVERAL_BUDGETS: _DELETED_AT,
    Cause.REFUSED: _DELETED_AT,
    Cause.HELD_BY_BUDGET: _DELETED_AT,
    Cause.SERVER_BUSY: _DELETED_AT,
    Cause.DETACHING: _NOT_AWAITED,
    Cause.REATTACHING: _NOT_AWAITED,
    Cause.AWAITING_SUCCESSOR: _NOT_AWAITED,
}
"""What happens at the end of what ends by time."""
_TIMELESS: Final = frozenset({Cause.LEAVING, Cause.AWAITING_LANE, Cause.AWAITING_WAVE})
"""Since when, and until when, changes with each pod that goes."""


def in_words(pods: Iterable[PodStanding], *, deadline: datetime) -> str:
    """Describe ``pods``; empty if there are none. What would come after ``deadline`` is not said:
    by then pods are deleted by force."""
    by_cause: dict[Cause, list[PodStanding]] = {}
    for pod in pods:
        by_cause.setdefault(pod.cause, []).append(pod)
    groups = [(cause, by_cause[cause]) for cause in WORST_FIRST if cause in by_cause]
    texts = [_group(cause, members, deadline) for cause, members in groups[:MOST_CAUSES]]
    if rest := sum(len(members) for _, members in groups[MOST_CAUSES:]):
        texts.append(f"{rest} more for other reasons")
    return "; ".join(texts)


def _group(cause: Cause, pods: Sequence[PodStanding], deadline: datetime) -> str:
    pods = sorted(pods, key=lambda pod: (pod.pod, pod.uid))
    names = first_few([pod.pod for pod in pods], MOST_PODS)
    said = (pod.detail for pod in pods[:MOST_PODS] if pod.detail not in ("", cause.value))
    details = list(dict.fromkeys(map(_cut, said)))
    detail = f" ({', '.join(details)})" if details else ""
    return f"{cause.value}: {names}{_times(cause, pods, deadline)}{detail}"


def _times(cause: Cause, pods: Sequence[PodStanding], deadline: datetime) -> str:
    if cause in _TIMELESS:
        return ""
    since = min((pod.since for pod in pods if pod.since is not None), default=None)
    until = min((pod.until for pod in pods if pod.until is not None), default=None)
    text = f" since {rfc3339(since)}" if since is not None else ""
    if until is not None and until < deadline and cause in _END:
        text += f", {_END[cause]} {rfc3339(until)}"
    return text


def _cut(detail: str) -> str:
    detail = detail.replace("; ", ", ")  # which is what parts causes
    return detail if len(detail) <= _LONGEST_DETAIL else f"{detail[: _LONGEST_DETAIL - 3]}..."
