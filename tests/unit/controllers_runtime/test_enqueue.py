from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime

from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import ObjectMeta
from mcm.clock import LoopClock
from mcm.controllers.enqueue import enqueue, enqueue_changes
from mcm.informers import Change, Informer
from mcm.simulation.virtualtime import run_virtual
from mcm.workqueue import WorkQueue
from tests.unit.informers.apiserver import ApiServer

CLOCK = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))


def machine(name: str) -> Machine:
    return Machine(metadata=ObjectMeta(name=name, namespace="n", uid=name))


def taken(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while (key := queue.get_nowait()) is not None:
        keys.append(key)
        queue.done(key)
    return keys


def test_what_is_new_goes_before_what_was_there_all_the_time() -> None:
    async def main() -> list[str]:
        informer = Informer(ApiServer(), MACHINES, clock=CLOCK, randomness=random.Random(0))
        queue = WorkQueue[str]("q", clock=CLOCK)

        def twice(change: Change[Machine]) -> Iterable[str]:
            yield change.object.metadata.name
            yield f"owner of {change.object.metadata.name}"

        enqueue_changes(queue, informer, twice)
        informer.deliver((Change(None, machine("listed"), initial=True),))
        informer.deliver((Change(machine("same"), machine("same"), resync=True),))
        informer.deliver((Change(None, machine("new")), Change(machine("gone"), None)))
        return taken(queue)

    assert run_virtual(main) == [
        "new",
        "owner of new",
        "gone",
        "owner of gone",
        "listed",
        "owner of listed",
        "same",
        "owner of same",
    ]


def test_keys_that_are_no_news_wait_behind_those_that_are() -> None:
    async def main() -> list[str]:
        queue = WorkQueue[str]("q", clock=CLOCK)
        enqueue(queue, ("a", "b"), initial=True)
        enqueue(queue, ("b", "c"))
        return taken(queue)

    assert run_virtual(main) == ["b", "c", "a"]
