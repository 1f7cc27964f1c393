"""Carrying out a drain's plan: the requests, and what each answer means for its pod."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import final

from mcm.api.core import PODS, Pod
from mcm.client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    TooManyRequests,
)
from mcm.client.verbs import ObjectWriter
from mcm.drain.budgets import BudgetView
from mcm.drain.execution.action import Action, Verb
from mcm.drain.execution.attempts import Attempts

logger = logging.getLogger(__name__)

_AT_ONCE = 16
"""Requests of one drain under way at a time; the client has a limit for all of them together."""


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod that could not be asked to leave, and why. ``lasting``: waiting alone will not help."""

    pod: Pod
    reason: str
    lasting: bool

    def __str__(self) -> str:
        return f"pod {self.pod.metadata.key}: {self.reason}"


async def execute(
    actions: Iterable[Action],
    client: ObjectWriter,
    attempts: Attempts,
    *,
    budgets: Callable[[Pod], BudgetView],
    monotonic: Callable[[], float],
) -> tuple[Refusal, ...]:
    """Carry out ``actions`` and remember the answers in ``attempts``.

    No answer is raised: a pod's trouble is its own. Cancellation leaves the rest undone.
    """
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(action: Action) -> Refusal | None:
        async with turn:
            error = await _ask(client, action)
        return _note(action.pod, error, attempts, budgets(action.pod), monotonic())

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(action)) for action in actions]
    return tuple(refusal for task in tasks if (refusal := task.result()) is not None)


async def _ask(client: ObjectWriter, action: Action) -> KubeError | None:
    meta = action.pod.metadata
    try:
        if action.verb is Verb.EVICT:
            await client.evict(meta.name, namespace=meta.namespace, uid=meta.uid)
        else:
            await client.delete(
                PODS,
                meta.name,
                namespace=meta.namespace,
                uid=meta.uid,
                grace_period_seconds=action.grace,
            )
    except (NotFound, Conflict):
        return None  # gone, or another pod bears its name by now: this one is gone as well
    except KubeError as error:
        return error
    return None


def _note(
    pod: Pod, error: KubeError | None, attempts: Attempts, view: BudgetView, now: float
) -> Refusal | None:
    uid = pod.metadata.uid
    if error is None:
        attempts.accepted(uid, now)
        return None
    reason, lasting = _reason(error, view)
    attempts.refused(
        uid,
        now,
        reason,
        budgets=view.versions if isinstance(error, TooManyRequests) else (),
        obstructed=lasting,
        at_least=_retry_after(error),
    )
    logger.info(
        "a pod was not taken away",
        extra={"pod": pod.metadata.key, "reason": reason, "lasting": lasting},
    )
    return Refusal(pod, reason, lasting)


def _reason(error: KubeError, view: BudgetView) -> tuple[str, bool]:
    if isinstance(error, TooManyRequests) and view.obstacle:
        return view.obstacle.text, True
    if isinstance(error, TooManyRequests) and view.names:
        return f"held back by pod disruption budget {', '.join(view.names)}", False
    if isinstance(error, Forbidden) and _namespace_ends(error):
        return "its namespace is being deleted, and will take it away", False
    if isinstance(error, ApiError) and error.code >= 500 and view.obstacle is not None:
        return view.obstacle.text, True
    # What the server does not allow today it will not allow in a minute.
    return f"{type(error).__name__}: {error}", isinstance(error, Forbidden)


def _namespace_ends(error: Forbidden) -> bool:
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _retry_after(error: KubeError) -> float:
    return (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
