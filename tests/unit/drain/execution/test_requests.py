from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.client.errors import ConnectionRefused, KubeError, RequestTimeout
from mcm.client.transport import Response
from mcm.drain.budgets import Allowances, BudgetView, Disruptions, view_for
from mcm.drain.execution import Action, Answered, AnswerKind, PodRequests, Step, Verb
from mcm.drain.interruption import Interruption
from mcm.simulation.virtualtime import run_virtual
from tests.unit.drain.execution.server import BUSY, HELD, NOT_SERVED, Asked, Server
from tests.unit.drain.pods import budget, pod


class Rig:
    """Requests to one server, and the budgets that are mirrored."""

    def __init__(self, server: Server, *budgets: PodDisruptionBudget) -> None:
        self.server = server
        self.budgets = {b.metadata.key: b for b in budgets}
        self.told: list[Answered] = []
        self.now = 0.0
        self.disruptions = Disruptions(
            pods=lambda key: pod(key.partition("/")[2]),
            budgets=self.budgets.get,
            random=Random(1),
        )
        self.requests = PodRequests(
            server,
            self.disruptions,
            monotonic=lambda: self.now,
            random=Random(1),
            told=self.told.append,
        )

    def view(self, subject: Pod) -> BudgetView:
        return view_for(subject, self.budgets.values())

    async def carry_out(
        self, actions: Sequence[Action], *, drain: str = "node"
    ) -> tuple[Answered, ...]:
        return await self.requests.carry_out(drain, actions, budgets=self.view)

    def left(self, name: str = "another") -> bool:
        """Tell whether a pod could get an allowance now."""
        allowances = Allowances(self.disruptions, now=self.now)
        return allowances.take(pod(name), self.view(pod(name)))


def evict(*names: str) -> list[Action]:
    return [Action(Verb.EVICT, pod(name)) for name in names]


def kinds(answers: Sequence[Answered]) -> list[AnswerKind]:
    return [answered.answer.kind for answered in answers]


async def test_a_request_bears_the_uid_and_the_grace_that_was_planned() -> None:
    rig = Rig(Server())
    actions = [
        *evict("a"),
        Action(Verb.DELETE, pod("b")),
        Action(Verb.DELETE, pod("c"), 1),
        Action(Verb.DELETE, pod("d"), 0),
    ]
    assert kinds(await rig.carry_out(actions)) == [AnswerKind.ACCEPTED] * 4
    assert rig.server.asked == [
        Asked("evict", "a", "uid-a"),
        Asked("delete", "b", "uid-b"),
        Asked("delete", "c", "uid-c", 1),
        Asked("delete", "d", "uid-d", 0),
    ]
    steps = [answered.action.step for answered in rig.told]
    assert steps == [Step.EVICT, Step.DELETE, Step.DELETE_CLAMPED, Step.DELETE_AT_ONCE]


@pytest.mark.parametrize(
    ("answer", "kind", "free"),
    [
        (Response(201, {}, b"{}"), AnswerKind.ACCEPTED, False),
        (HELD, AnswerKind.HELD_BY_BUDGET, False),
        (BUSY, AnswerKind.SERVER_BUSY, True),
        (Response(500, {}, b"broken"), AnswerKind.FAILED, True),
        (Response(403, {}, b'{"reason":"Forbidden"}'), AnswerKind.FORBIDDEN, True),
        (Response(404, {}, b'{"details":{"kind":"pods"}}'), AnswerKind.GONE, True),
        (RequestTimeout("late"), AnswerKind.LOST, False),
        (ConnectionRefused("no"), AnswerKind.FAILED, True),
    ],
)
async def test_only_what_was_or_may_have_been_granted_uses_the_budget_up(
    answer: Response | KubeError, kind: AnswerKind, *, free: bool
) -> None:
    rig = Rig(Server({"a": answer}), budget("b", allowed=1, healthy=0))
    assert kinds(await rig.carry_out(evict("a"))) == [kind]
    assert rig.left() is free
    rig.now = 60.0
    assert rig.left()


async def test_a_deletion_uses_the_budget_up_as_well() -> None:
    rig = Rig(Server(), budget("b", allowed=1, healthy=0))
    await rig.carry_out([Action(Verb.DELETE, pod("a"))])
    assert not rig.left()


def test_two_drains_never_ask_for_the_same_allowance() -> None:
    async def main() -> None:
        rig = Rig(Server(takes=1.0), budget("b", allowed=1, healthy=0))

        async def drain(name: str) -> None:
            allowances = Allowances(rig.disruptions, now=0.0)
            if allowances.take(pod(name), rig.view(pod(name))):
                await rig.carry_out(evict(name), drain=name)

        await asyncio.gather(*(drain(f"p{i}") for i in range(100)))
        assert len(rig.server.asked) == 1

    run_virtual(main)


def test_a_busy_server_is_asked_nothing_more_in_this_pass() -> None:
    async def main() -> None:
        rig = Rig(Server({"p0": BUSY}, takes=1.0), budget("b", allowed=100, healthy=0))
        names = [f"p{i}" for i in range(40)]
        answers = await rig.carry_out(evict(*names))
        assert len(answers) == 16  # those that were under way
        assert answers[0].answer.retry_after == 3.0
        assert rig.disruptions.statistics() == {"default/b": 15}

    run_virtual(main)


async def test_a_busy_server_is_left_alone_by_the_whole_drain_longer_each_time() -> None:
    rig = Rig(Server({"a": BUSY}))
    waits = []
    for _ in range(8):
        await rig.carry_out(evict("a"))
        waits.append(rig.requests.busy_for("node"))
        assert await rig.carry_out(evict("a", "b")) == ()
        rig.now += waits[-1]
    assert len(rig.server.asked) == 8
    assert 3.0 <= waits[0] <= 3.5
    assert 60.0 <= waits[-1] <= 90.0
    assert waits == sorted(waits)
    assert kinds(await rig.carry_out(evict("b"), drain="another")) == [AnswerKind.ACCEPTED]
    assert kinds(await rig.carry_out(evict("b"))) == [AnswerKind.ACCEPTED]
    await rig.carry_out(evict("a"))
    assert rig.requests.busy_for("node") <= 3.5


async def test_what_is_urgent_does_not_wait_for_a_busy_server() -> None:
    rig = Rig(Server({"a": BUSY}))
    await rig.carry_out(evict("a"))
    by_force = [Action(Verb.DELETE, pod("b"), 1)]
    answers = await rig.requests.carry_out("node", by_force, budgets=rig.view, urgent=True)
    assert kinds(answers) == [AnswerKind.ACCEPTED]


def test_a_cancelled_pass_gives_back_what_it_did_not_ask_for() -> None:
    async def main() -> None:
        rig = Rig(Server(takes=10.0), budget("b", allowed=100, healthy=0))
        names = [f"p{i}" for i in range(40)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await rig.carry_out(evict(*names))
        assert rig.disruptions.statistics() == {"default/b": 16}
        assert (await rig.carry_out(evict("after")))[0].answer.is_over

    run_virtual(main)


@pytest.mark.parametrize("called", [True, False])
def test_answers_that_nobody_waits_for_any_longer_are_lost(*, called: bool) -> None:
    async def main() -> None:
        rig = Rig(Server(takes=30.0), budget("b", allowed=100, healthy=0))
        interruption = Interruption()
        began = asyncio.get_running_loop().time()
        if called:
            asyncio.get_running_loop().call_later(2.0, interruption.call)
        answers = await rig.requests.carry_out(
            "node",
            evict(*(f"p{i}" for i in range(40))),
            budgets=rig.view,
            interruption=interruption,
            within=None if called else 2.5,
        )
        assert asyncio.get_running_loop().time() - began == 2.5
        assert kinds(answers) == [AnswerKind.LOST] * 16  # the others were not asked
        assert kinds(rig.told) == kinds(answers)
        assert rig.disruptions.statistics() == {"default/b": 16}
        assert rig.server.under_way == []
        assert (await rig.carry_out(evict("after")))[0].answer.is_over

    run_virtual(main)


def test_answers_that_come_in_a_moment_are_taken() -> None:
    async def main() -> None:
        rig = Rig(Server(takes=0.4))
        interruption = Interruption()
        interruption.call()
        answers = await rig.requests.carry_out(
            "node", evict("a", "b"), budgets=rig.view, interruption=interruption
        )
        assert kinds(answers) == [AnswerKind.ACCEPTED] * 2

    run_virtual(main)


def test_what_is_urgent_does_not_wait_for_others_answers() -> None:
    async def main() -> None:
        rig = Rig(Server(takes=30.0))
        async with asyncio.TaskGroup() as group:
            for drain in ("x", "y"):
                names = [f"{drain}{i}" for i in range(20)]
                group.create_task(rig.carry_out(evict(*names), drain=drain))
            await rig.server.clock.sleep(1.0)
            assert rig.server.most_under_way == 32
            by_force = [Action(Verb.DELETE, pod("b"), 1)]
            urgent = rig.requests.carry_out("z", by_force, budgets=rig.view, urgent=True)
            group.create_task(urgent)
            await rig.server.clock.sleep(1.0)
            assert "b" in rig.server.under_way

    run_virtual(main)


async def test_what_a_fence_raises_is_raised_and_nobody_gets_the_allowance_yet() -> None:
    class Fenced(Server):
        async def perform(self, call: Any, read: Any) -> Any:
            raise RuntimeError("no longer leading")

    rig = Rig(Fenced(), budget("b", allowed=1, healthy=0))
    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        await rig.carry_out(evict("a"))
    assert not rig.left()


# ---- an API server without evictions -------------------------------------------------------------


async def test_where_evictions_are_not_served_pods_are_deleted_with_their_own_grace() -> None:
    rig = Rig(Server(core=("pods",)))
    assert kinds(await rig.carry_out(evict("a"))) == [AnswerKind.NO_EVICTION_API]
    assert rig.requests.api.missing
    assert kinds(await rig.carry_out(evict("a"))) == [AnswerKind.ACCEPTED]
    assert rig.server.asked == [
        Asked("evict", "a", "uid-a"),
        Asked("discover", ""),
        Asked("delete", "a", "uid-a"),
    ]
    assert rig.told[-1].action.step is Step.DELETE


async def test_discovery_is_asked_once_however_many_pods_get_the_answer() -> None:
    rig = Rig(Server(core=("pods",)))
    answers = await rig.carry_out(evict("a", "b", "c", "d"))
    assert kinds(answers) == [AnswerKind.NO_EVICTION_API] * 4
    assert rig.server.asked.count(Asked("discover", "")) == 1


@pytest.mark.parametrize("core", [("pods", "pods/eviction"), (), ("nodes",)])
async def test_a_404_of_somebody_in_the_way_does_not_end_evictions(core: tuple[str, ...]) -> None:
    server = Server({"a": NOT_SERVED}, core=("pods", "pods/eviction"))
    rig = Rig(server)
    server.core = (*core, "pods/eviction") if "pods" in core else core
    assert kinds(await rig.carry_out(evict("a"))) == [AnswerKind.FAILED]
    assert not rig.requests.api.missing


async def test_discovery_that_fails_proves_nothing() -> None:
    class Unreadable(Server):
        async def perform(self, call: Any, read: Any) -> Any:
            if call.path == "/api/v1":
                raise RequestTimeout("late")
            return await super().perform(call, read)

    rig = Rig(Unreadable({"a": NOT_SERVED}))
    assert kinds(await rig.carry_out(evict("a"))) == [AnswerKind.FAILED]
    assert not rig.requests.api.missing
