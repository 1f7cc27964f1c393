"""Carries out what drains want to ask, in turn and within budgets, and says what came of it.

One for the process, over all drains of one cluster.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from mcm.api.core import PODS, Pod
from mcm.client.errors import KubeError
from mcm.client.verbs import ObjectClient
from mcm.drain.budgets import BudgetView, Disruptions
from mcm.drain.execution.action import Action, Verb
from mcm.drain.execution.answers import Answer, AnswerKind, answer_to
from mcm.drain.execution.busy_server import BusyServer
from mcm.drain.execution.eviction_api import EvictionAPI
from mcm.drain.execution.turns import Turns
from mcm.drain.interruption import Interruption

logger = logging.getLogger(__name__)

_MAY_BE_GRANTED: Final = frozenset({AnswerKind.ACCEPTED, AnswerKind.REPLACED, AnswerKind.LOST})
"""After these the server may have taken a disruption from the pod's budget."""


URGENT_AT_ONCE: Final = 16
"""Requests that must not wait for others' answers, beside those that do."""


@final
@dataclass(frozen=True, slots=True)
class Answered:
    """What came of one action. ``took`` in seconds."""

    action: Action
    answer: Answer
    took: float


@final
@dataclass(frozen=True, slots=True)
class _Sent:
    """A request that went out, in monotonic seconds."""

    action: Action
    at: float


Listener: TypeAlias = Callable[[Answered], None]
"""Told each answer, for metrics: by ``action.step``, ``answer.kind`` and ``answer.code``."""


@final
class PodRequests:
    """Asks for pods' evictions and deletions; ``random`` spreads waits, ``told`` hears answers."""

    def __init__(
        self,
        client: ObjectClient,
        disruptions: Disruptions,
        *,
        monotonic: Callable[[], float],
        random: random_module.Random,
        turns: Turns | None = None,
        told: Listener = lambda _answered: None,
    ) -> None:
        self.api = EvictionAPI(client)
        self._client = client
        self._disruptions = disruptions
        self._monotonic = monotonic
        self._busy = BusyServer(random)
        self._turns = turns or Turns()
        self._urgent_turns = Turns(total=URGENT_AT_ONCE, each=URGENT_AT_ONCE)
        self._told = told

    async def carry_out(
        self,
        drain: str,
        actions: Iterable[Action],
        *,
        budgets: Callable[[Pod], BudgetView],
        urgent: bool = False,
        interruption: Interruption | None = None,
        within: float | None = None,
    ) -> tuple[Answered, ...]:
        """Carry out ``actions`` of one drain; return the answers of those that were asked.

        No answer is raised: a pod's trouble is its own. After an answer that the server is busy
        none is begun for :meth:`busy_for` seconds, unless it is ``urgent``: then it waits in no
        line with others either. Answers that are not there after ``within`` seconds, or at an
        ``interruption``, count as lost. A cancellation leaves the rest unasked, and lets nobody
        have the allowances of those under way until the mirror tells what came of them.
        """
        actions = tuple(actions)
        if not urgent and self.busy_for(drain) > 0:
            return ()
        for action in actions:  # before anybody else plans; a deletion disrupts as well
            self._disruptions.asked(action.pod, budgets(action.pod))
        batch = _Batch(self, drain, self._urgent_turns if urgent else self._turns)
        try:
            async with (interruption or Interruption()).limit(within):
                await batch.run(actions)
        except TimeoutError:
            batch.give_up()
        answers = batch.answers_to(actions)
        self._note_pace(drain, answers)
        return answers

    def busy_for(self, drain: str) -> float:
        """Return for how many seconds the drain asks nothing, as the server has too much to do."""
        return self._busy.wait(drain, self._monotonic())

    def _note_pace(self, drain: str, answers: Sequence[Answered]) -> None:
        busy = [a.answer for a in answers if a.answer.kind is AnswerKind.SERVER_BUSY]
        if busy:
            longest = max(answer.retry_after or 0.0 for answer in busy)
            self._busy.refused(drain, self._monotonic(), retry_after=longest)
        elif answers:
            self._busy.served(drain)

    async def ask(self, action: Action) -> Answered:
        """Send one request, in nobody's turn. Raises what a fence in the way raises."""
        began = self._monotonic()
        if action.verb is Verb.EVICT and self.api.missing:
            action = replace(action, verb=Verb.DELETE)
        answer = answer_to(action.verb, await self._sent(action))
        if answer.kind is AnswerKind.NO_EVICTION_API and not await self.api.is_missing():
            answer = replace(answer, kind=AnswerKind.FAILED)
        answered = Answered(action, answer, self._monotonic() - began)
        self._told(answered)
        return answered

    def lost(self, action: Action, began: float) -> Answered:
        """Tell of a request that was given up, and may have been taken for all one knows."""
        answer = Answer(AnswerKind.LOST, "<error>", "no answer was waited for any longer")
        answered = Answered(action, answer, self.now() - began)
        self._told(answered)
        return answered

    def now(self) -> float:
        return self._monotonic()

    async def _sent(self, action: Action) -> KubeError | None:
        meta, client = action.pod.metadata, self._client
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
        except KubeError as error:
            return error
        return None

    # ---- allowances ------------------------------------------------------------------------------

    def note(self, uid: str, answer: Answer) -> None:
        """Let budgets know what became of the disruption that was asked for."""
        now, kind = self._monotonic(), answer.kind
        if kind in _MAY_BE_GRANTED:
            self._disruptions.granted(uid, now)
        elif kind is AnswerKind.HELD_BY_BUDGET:
            self._disruptions.refused(uid, now, retry_after=answer.retry_after)
        else:
            self._disruptions.released(uid)

    def note_interrupted(self, uid: str, *, sent: bool) -> None:
        """The request was cancelled, or its answer will never be known."""
        if sent:
            self._disruptions.granted(uid, self._monotonic())
        else:
            self._disruptions.released(uid)


@final
class _Batch:
    """The requests of one pass of one drain."""

    def __init__(self, requests: PodRequests, drain: str, turns: Turns) -> None:
        self._requests = requests
        self._drain = drain
        self._turns = turns
        self._busy = False
        self._sent: dict[str, _Sent] = {}
        self._answered: dict[str, Answered] = {}

    async def run(self, actions: Iterable[Action]) -> None:
        async with asyncio.TaskGroup() as group:
            for action in actions:
                group.create_task(self._carry_out(action))

    def answers_to(self, actions: Iterable[Action]) -> tuple[Answered, ...]:
        uids = (action.pod.metadata.uid for action in actions)
        return tuple(self._answered[uid] for uid in uids if uid in self._answered)

    def give_up(self) -> None:
        """Count as lost what was asked and not answered."""
        for uid, sent in self._sent.items():
            if uid not in self._answered:
                self._answered[uid] = self._requests.lost(sent.action, sent.at)

    async def _carry_out(self, action: Action) -> None:
        requests, uid, sent = self._requests, action.pod.metadata.uid, False
        try:
            async with self._turns.turn(self._drain):
                if self._busy:
                    requests.note_interrupted(uid, sent=False)
                    return
                sent = True
                self._sent[uid] = _Sent(action, requests.now())
                answered = await requests.ask(action)
        except BaseException:
            requests.note_interrupted(uid, sent=sent)
            raise
        self._answered[uid] = answered
        requests.note(uid, answered.answer)
        if answered.answer.kind is AnswerKind.SERVER_BUSY:
            self._busy = True
        if not answered.answer.is_over:
            logger.info(
                "a pod was not taken away",
                extra={
                    "pod": action.pod.metadata.key,
                    "step": action.step.value,
                    "answer": answered.answer.kind.value,
                    "cause": answered.answer.text,
                },
            )
