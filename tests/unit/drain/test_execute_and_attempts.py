from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from mcm.api.core import Node, NodeCondition, NodeSpec, NodeStatus, Pod, PodDisruptionBudget
from mcm.api.meta import ObjectMeta
from mcm.client.errors import (
    Cause,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
)
from mcm.client.requests import Call
from mcm.client.transport import Response
from mcm.client.verbs import ObjectWriter
from mcm.drain import (
    Action,
    Attempts,
    Refusal,
    Verb,
    cordon_patch,
    execute,
    terminating_patch,
    view_for,
)
from tests.unit.drain.pods import NOW, budget, pod

R = TypeVar("R")


class Server(ObjectWriter):
    """Answers every request about a pod with what it was told."""

    def __init__(self, answers: dict[str, KubeError] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[tuple[str, str, str, int | None]] = []

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        options = json.loads(call.body)
        grace = options.get("deleteOptions", options).get("gracePeriodSeconds")
        self._answer(call.verb.lower(), call.name, call.uid, grace)
        return read(Response(200, {}, b'{"kind":"Status"}'))

    def _answer(self, verb: str, name: str, uid: str, grace: int | None) -> None:
        self.asked.append((verb, name, uid, grace))
        if name in self.answers:
            raise self.answers[name]


async def run(
    server: Server, actions: Sequence[Action], budgets: Sequence[PodDisruptionBudget] = ()
) -> tuple[Attempts, Sequence[Refusal]]:
    attempts = Attempts(random.Random(1))
    refusals = await execute(
        actions,
        server,
        attempts,
        budgets=lambda p: view_for(p, budgets),
        monotonic=lambda: 100.0,
    )
    return attempts, refusals


def evict(subject: Pod) -> Action:
    return Action(Verb.EVICT, subject)


async def test_requests_bear_the_uid_and_the_grace_that_was_planned() -> None:
    server = Server()
    await run(server, [evict(pod("a")), Action(Verb.DELETE, pod("b"), 1)])
    assert sorted(server.asked) == [("delete", "b", "uid-b", 1), ("evict", "a", "uid-a", None)]


@pytest.mark.parametrize("answer", [NotFound(404), Conflict(409)])
async def test_a_pod_that_is_gone_or_another_one_by_now_is_done(answer: KubeError) -> None:
    attempts, refusals = await run(Server({"a": answer}), [evict(pod("a"))])
    assert not refusals
    assert attempts.view()["uid-a"].accepted_at == 100.0


async def test_a_misconfigured_budget_is_a_lasting_refusal_that_says_so() -> None:
    _, refusals = await run(
        Server({"a": TooManyRequests(429)}), [evict(pod("a"))], [budget("strict")]
    )
    assert refusals[0].lasting
    assert "default/strict is misconfigured" in str(refusals[0])


async def test_a_budget_that_refuses_for_now_is_remembered_with_its_version() -> None:
    refusing = budget("b", healthy=0, version="7")
    attempts, refusals = await run(
        Server({"a": TooManyRequests(429)}), [evict(pod("a"))], [refusing]
    )
    assert not refusals[0].lasting
    assert attempts.view()["uid-a"].budgets == ("default/b@7",)


@pytest.mark.parametrize(
    ("answer", "words", "lasting"),
    [
        (Forbidden(403, causes=(Cause("NamespaceTerminating", "", ""),)), "namespace", False),
        (Forbidden(403, "Forbidden", "not allowed"), "not allowed", True),
        (ServerError(500, "", "broken"), "broken", False),
        (TransportError("reset"), "reset", False),
    ],
)
async def test_other_answers_are_the_pods_own_trouble(
    answer: KubeError, words: str, *, lasting: bool
) -> None:
    _, refusals = await run(Server({"a": answer}), [evict(pod("a")), evict(pod("b"))])
    assert len(refusals) == 1
    assert words in str(refusals[0])
    assert refusals[0].lasting is lasting


async def test_two_budgets_on_one_pod_are_named_when_the_server_gives_up() -> None:
    budgets = [budget("one", allowed=1), budget("two", allowed=1)]
    _, refusals = await run(Server({"a": ServerError(500)}), [evict(pod("a"))], budgets)
    assert refusals[0].lasting
    assert "default/one, default/two" in str(refusals[0])


async def test_retry_after_is_a_lower_bound() -> None:
    attempts, _ = await run(
        Server({"a": TooManyRequests(429, retry_after=90.0)}), [evict(pod("a"))]
    )
    assert attempts.view()["uid-a"].retry_at == 190.0


def test_waits_grow_to_a_limit_and_longer_first_for_what_nobody_waits_away() -> None:
    attempts = Attempts(random.Random(1))
    waits = []
    for _ in range(8):
        attempts.refused("p", 0.0, "no")
        waits.append(attempts.view()["p"].retry_at)
    assert 15.0 <= waits[0] <= 20.0
    assert max(waits) <= 180.0
    assert waits[-1] >= 135.0
    attempts.refused("q", 0.0, "never", obstructed=True)
    assert attempts.view()["q"].retry_at >= 45.0


def test_pods_that_are_gone_are_forgotten() -> None:
    attempts = Attempts(random.Random(1))
    attempts.accepted("a", 1.0)
    attempts.accepted("b", 1.0)
    attempts.keep_only({"b"})
    assert set(attempts.view()) == {"b"}


def node(*, unschedulable: bool = False, conditions: tuple[NodeCondition, ...] = ()) -> Node:
    return Node(
        metadata=ObjectMeta(name="node", uid="u"),
        spec=NodeSpec(unschedulable=unschedulable),
        status=NodeStatus(conditions=conditions),
    )


def test_a_node_is_cordoned_once() -> None:
    assert cordon_patch(node()) == {"metadata": {"uid": "u"}, "spec": {"unschedulable": True}}
    assert cordon_patch(node(unschedulable=True)) is None


@pytest.mark.parametrize(("unhealthy", "reason"), [(True, "Unhealthy"), (False, "ScaleDown")])
def test_the_terminating_condition_says_why(reason: str, *, unhealthy: bool) -> None:
    patch = terminating_patch(node(), NOW, unhealthy=unhealthy)
    assert patch is not None
    status = patch["status"]
    assert isinstance(status, dict)
    written = status["conditions"][0]
    assert (written["type"], written["status"], written["reason"]) == (
        "Terminating",
        "True",
        reason,
    )


def test_the_terminating_condition_is_written_once() -> None:
    said = NodeCondition(type="Terminating", status="True", reason="ScaleDown")
    assert terminating_patch(node(conditions=(said,)), NOW, unhealthy=True) is None
