"""A preservation goes on wherever a process ended, be it ours or the Go original's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

import pytest

from mcm.api.core import NODES, PODS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_PRESERVE,
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    TAINT_PRESERVED,
)
from mcm.api.timestamps import rfc3339
from mcm.client.errors import RequestTimeout
from mcm.client.requests import PatchType
from mcm.client.transport import Request
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench, with_settings

BY_MCM = {
    ANNOTATION_SCALE_DOWN_DISABLED: "true",
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: "true",
}
LENGTH = timedelta(minutes=5)
SETTINGS = with_settings(preserve_timeout=LENGTH, health_timeout=timedelta(seconds=10))
TAINT: JSONObject = {
    "key": TAINT_PRESERVED,
    "effect": "NoSchedule",
    "timeAdded": "2026-01-01T00:00:30Z",
}


@dataclass
class Found:
    """What stands on the machine and its Node, as far as it is about being kept."""

    kept: bool
    request: dict[str, str]
    on_node: set[str]
    says: str
    tainted: bool


async def found(b: Bench) -> Found:
    machine, node = await b.machine(), await b.node()
    of_machine, of_node = machine.metadata.annotations, node.metadata.annotations
    names = (ANNOTATION_PRESERVE, ANNOTATION_LAST_APPLIED_PRESERVE)
    conditions = (c for c in node.status.conditions if c.type == "Preserved")
    return Found(
        kept=machine.status.current_status.preserve_expiry_time is not None,
        request={name: of_machine[name] for name in names if name in of_machine},
        on_node=({ANNOTATION_PRESERVE} | BY_MCM.keys()) & of_node.keys(),
        says=next((f"{c.status} {c.reason} {c.message}" for c in conditions), ""),
        tainted=any(t.key == TAINT_PRESERVED for t in node.spec.taints),
    )


async def patch_node(b: Bench, body: JSONObject) -> None:
    await b.client.patch(NODES, "node-m", body)


async def fail(b: Bench) -> None:
    """Let the machine fail on what its kubelet did not report for long: its pods are dead."""
    condition: JSONObject = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "lastTransitionTime": rfc3339(b.clock.now() - timedelta(minutes=6)),
    }
    await set_condition(b, condition)
    await b.until_phase("Failed", within=60)


async def set_condition(b: Bench, condition: JSONObject) -> None:
    await b.client.patch(
        NODES,
        "node-m",
        {"status": {"conditions": [condition]}},
        subresource="status",
        patch_type=PatchType.STRATEGIC,
    )


async def ask(b: Bench, value: str | None) -> None:
    await patch_node(b, {"metadata": {"annotations": {ANNOTATION_PRESERVE: value}}})


Story: TypeAlias = Callable[[Bench], Coroutine[object, object, None]]


async def kept_while_it_runs(b: Bench) -> None:
    await ask(b, "now")
    await b.settle(30)


async def kept_as_it_fails(b: Bench) -> None:
    await ask(b, "when-failed")
    await fail(b)
    await b.settle(30)


async def kept_until_its_time_is_over(b: Bench) -> None:
    await kept_as_it_fails(b)
    await b.clock.sleep(LENGTH.total_seconds())


async def kept_until_nobody_asks(b: Bench) -> None:
    await kept_as_it_fails(b)
    await ask(b, None)
    await b.settle(30)


async def kept_until_it_recovers(b: Bench) -> None:
    await kept_as_it_fails(b)
    await b.set_ready("m", "True")
    await b.until_phase("Running")
    await b.settle(30)


STOPPED = "False Preservation stopped. "
ENDS: dict[Story, Found] = {
    kept_while_it_runs: Found(
        kept=True,
        request={ANNOTATION_LAST_APPLIED_PRESERVE: "now"},
        on_node={ANNOTATION_PRESERVE, *BY_MCM},
        says="True Preserved by user. Machine preserved until",
        tainted=False,
    ),
    kept_as_it_fails: Found(
        kept=True,
        request={ANNOTATION_LAST_APPLIED_PRESERVE: "when-failed"},
        on_node={ANNOTATION_PRESERVE, *BY_MCM},
        says="True Preserved by user. Preserved node drained successfully. Machine preserved until",
        tainted=True,
    ),
    kept_until_its_time_is_over: Found(
        kept=False, request={}, on_node=set(), says=STOPPED, tainted=False
    ),
    kept_until_nobody_asks: Found(
        kept=False, request={}, on_node=set(), says=STOPPED, tainted=False
    ),
    kept_until_it_recovers: Found(
        kept=False,
        request={ANNOTATION_LAST_APPLIED_PRESERVE: "when-failed"},
        on_node={ANNOTATION_PRESERVE},
        says=STOPPED,
        tainted=False,
    ),
}


BUDGET: dict[Story, tuple[int, int]] = {
    # Its end, the Node's word, the copy of the Node's condition; the Node's marks, its condition.
    kept_while_it_runs: (3, 2),
    # Unknown and Failed on top.
    kept_as_it_fails: (5, 2),
    # The request, its end; the Node's marks, its condition.
    kept_until_its_time_is_over: (5 + 2, 2 + 2),
    kept_until_nobody_asks: (5 + 2, 2 + 2),
    # The phase, its end; the Node's marks, its condition.
    kept_until_it_recovers: (5 + 2, 2 + 2),
}
"""How many writes each story takes, to the machine and to its Node."""


@pytest.mark.parametrize("story", BUDGET, ids=lambda story: story.__name__)
def test_no_write_is_one_too_many(story: Story) -> None:
    @on_bench
    async def main() -> None:
        async with bench(settings=SETTINGS) as b:
            await b.make_class()
            await b.running()
            await story(b)
            assert (len(b.written("machines")), len(b.written("nodes"))) == BUDGET[story]

    main()


AS_IT_FAILS = sum(BUDGET[kept_as_it_fails])
BOUNDARIES = [
    *((kept_while_it_runs, n) for n in range(1, 6)),
    *((kept_until_its_time_is_over, n) for n in range(1, AS_IT_FAILS + 5)),
    *((kept_until_nobody_asks, AS_IT_FAILS + n) for n in range(1, 5)),
    *((kept_until_it_recovers, AS_IT_FAILS + n) for n in range(1, 5)),
]


@pytest.mark.parametrize(("story", "number"), BOUNDARIES)
@pytest.mark.parametrize("arrived", [False, True])
def test_the_process_may_end_at_any_write(story: Story, number: int, *, arrived: bool) -> None:
    """It ends at its write number ``number``, which gets through only if ``arrived``; and the
    end of the story is the same."""

    @on_bench
    async def main() -> None:
        async with bench(settings=SETTINGS) as b:
            await b.make_class()
            await b.running()
            await b.run_pod("p")
            ended, seen = asyncio.Event(), 0

            def count(request: Request) -> None:
                nonlocal seen
                if "/machines/m" in request.path or "/nodes/node-m" in request.path:
                    seen += 1
                    if seen == number:
                        ended.set()
                        if not arrived:
                            raise RequestTimeout("lost on its way")

            async def take_over() -> None:
                await ended.wait()
                await b.crash()
                await b.start()

            b.transport.before_write = count
            b.faults.lose_answers(
                where=lambda r: arrived and seen == number and r.method != "GET", times=1
            )
            successor = asyncio.create_task(take_over())
            await story(b)
            assert ended.is_set()
            await successor
            await b.settle(5)
            end, expected = await found(b), ENDS[story]
            assert end.says.startswith(expected.says)
            end.says = expected.says
            assert end == expected
            assert await b.exists(PODS, "p") is (story is kept_while_it_runs)
            assert b.driver.made == 1
            b.writes.clear()
            await b.settle(120)
            assert not b.writes

    main()


@dataclass
class Left:
    """What the Go original left behind, and what is to become of it."""

    phase: str
    machine: dict[str, str] = field(default_factory=dict)
    node: dict[str, str] = field(default_factory=dict)
    until: int | None = 3600
    """Seconds from now."""
    taints: list[JSONObject] = field(default_factory=list)
    says: tuple[str, str, str] | None = None
    kept: bool = True
    then_says: str = ""


BY_USER, BY_US = "Preserved by user.", "Preserved by MCM."
UNTIL = "Machine preserved until 2026-01-01 01:00:30 +0000 UTC."
DRAINED = f"Preserved node drained successfully. {UNTIL}"
OURS = "Machine preserved until 2026-01-01T"
PRESERVE, LAST = ANNOTATION_PRESERVE, ANNOTATION_LAST_APPLIED_PRESERVE

LEFT = {
    "after the expiry was written": Left(
        "Running", {PRESERVE: "now"}, then_says=f"True {BY_USER} {OURS}"
    ),
    "after the annotations against the autoscaler": Left(
        "Running", {PRESERVE: "now"}, BY_MCM, then_says=f"True {BY_USER} {OURS}"
    ),
    "after the condition, before the hand-over": Left(
        "Running",
        {},
        {**BY_MCM, PRESERVE: "now"},
        says=("True", BY_USER, UNTIL),
        then_says=f"True {BY_USER} {OURS}",
    ),
    "failed, after the expiry": Left(
        "Failed",
        {PRESERVE: "when-failed"},
        then_says=f"True {BY_USER} Preserved node drained successfully. {OURS}",
    ),
    "failed, after the taint": Left(
        "Failed",
        {PRESERVE: "when-failed"},
        BY_MCM,
        taints=[TAINT],
        then_says=f"True {BY_USER} Preserved node drained successfully. {OURS}",
    ),
    "failed, after a drain that failed": Left(
        "Failed",
        {PRESERVE: "auto-preserved"},
        BY_MCM,
        taints=[TAINT],
        says=("False", BY_US, f"Preserved node could not be drained. {UNTIL}"),
        then_says=f"True {BY_US} Preserved node drained successfully. {OURS}",
    ),
    "failed, all done": Left(
        "Failed",
        {LAST: "when-failed"},
        {**BY_MCM, PRESERVE: "when-failed"},
        taints=[TAINT],
        says=("True", BY_USER, DRAINED),
        then_says=f"True {BY_USER} Preserved node drained successfully. {OURS}",
    ),
    "recovered, the taint still there": Left(
        "Running",
        {PRESERVE: "now"},
        BY_MCM,
        taints=[TAINT],
        says=("True", BY_USER, DRAINED),
        then_says=f"True {BY_USER} {OURS}",
    ),
    "its expiry lost by another status write": Left(
        "Running",
        {PRESERVE: "now"},
        BY_MCM,
        until=None,
        says=("True", BY_USER, UNTIL),
        then_says=f"True {BY_USER} {OURS}",
    ),
    "its expiry lost, and nobody asks any more": Left(
        "Running",
        {},
        BY_MCM,
        until=None,
        says=("True", BY_USER, UNTIL),
        kept=False,
        then_says=STOPPED,
    ),
    "over while nobody led": Left(
        "Failed",
        {LAST: "now"},
        {**BY_MCM, PRESERVE: "now"},
        until=-3600,
        taints=[TAINT],
        says=("True", BY_USER, DRAINED),
        kept=False,
        then_says=STOPPED,
    ),
    "ending, after the condition": Left(
        "Failed",
        {PRESERVE: "false"},
        BY_MCM,
        taints=[TAINT],
        says=("False", "Preservation stopped.", ""),
        kept=False,
        then_says=STOPPED,
    ),
    "ending, after the Node's annotations": Left(
        "Failed",
        {LAST: "now"},
        until=-60,
        taints=[TAINT],
        says=("False", "Preservation stopped.", ""),
        kept=False,
        then_says=STOPPED,
    ),
    "ending, after the machine's annotations": Left(
        "Failed",
        until=-60,
        taints=[TAINT],
        says=("False", "Preservation stopped.", ""),
        kept=False,
        then_says=STOPPED,
    ),
    "ending, before the expiry is cleared": Left(
        "Failed",
        until=-60,
        says=("False", "Preservation stopped.", ""),
        kept=False,
        then_says=STOPPED,
    ),
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT.keys())
def test_what_the_go_original_left_is_finished(left: Left) -> None:
    @on_bench
    async def main() -> None:
        async with bench(settings=SETTINGS) as b:
            await b.make_class()
            await b.running()
            if left.phase == "Failed":
                await fail(b)
            await b.run_pod("p")
            await b.crash()
            await leave(b, left)
            b.writes.clear()
            await b.start()
            await b.settle(30)
            end = await found(b)
            assert end.kept is left.kept
            assert end.says.startswith(left.then_says)
            assert end.tainted is (left.kept and left.phase == "Failed")
            assert (ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM in end.on_node) is left.kept
            was_drained = left.says is not None and "drained successfully" in left.says[2]
            to_drain = left.kept and left.phase == "Failed" and not was_drained
            assert await b.exists(PODS, "p") is not to_drain
            b.writes.clear()
            await b.settle(120)
            assert not b.writes

    main()


async def leave(b: Bench, left: Left) -> None:
    until = None if left.until is None else b.clock.now() + timedelta(seconds=left.until)
    status: JSONObject = {
        "currentStatus": {"preserveExpiryTime": None if until is None else rfc3339(until)}
    }
    await b.client.patch(
        MACHINES, "m", {"status": status}, namespace=NAMESPACE, subresource="status"
    )
    body: JSONObject = {"metadata": {"annotations": dict(left.machine)}}
    await b.client.patch(MACHINES, "m", body, namespace=NAMESPACE)
    annotations: JSONObject = dict(left.node)
    taints: list[object] = list(left.taints)
    await patch_node(b, {"metadata": {"annotations": annotations}, "spec": {"taints": taints}})
    if left.says is not None:
        word, reason, message = left.says
        condition: JSONObject = {
            "type": "Preserved",
            "status": word,
            "reason": reason,
            "message": message,
            "lastTransitionTime": rfc3339(b.clock.now()),
        }
        await set_condition(b, condition)
