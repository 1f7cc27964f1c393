"""Whatever users, kubelets and crashes do in whatever order: the end is as the last words say, and
nothing that is somebody else's was touched."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from datetime import timedelta

import pytest

from mcm.api.core import NODES
from mcm.api.machine import Machine, MachinePhase, MachineStatus
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    TAINT_PRESERVED,
)
from mcm.controllers.machine import status
from mcm.controllers.machine.own_conditions import OwnCondition, find_own
from mcm.controllers.replicas.preserve_request import preserve_request
from tests.unit.machine.bench import Bench, bench, on_bench, with_settings
from tests.unit.machine.objects import after
from tests.unit.machine.preservation.test_crashes_and_takeover import fail
from tests.unit.machine.preservation.test_scenarios import (
    annotate_machine,
    annotate_node,
    condition,
    expiry,
    taints,
)

WORDS = ("now", "when-failed", "auto-preserved", "false", "nonsense", None)
LENGTH = timedelta(minutes=20)
SETTINGS = with_settings(preserve_timeout=LENGTH, health_timeout=timedelta(seconds=10))
ACTIONS = 14


@pytest.mark.parametrize("seed", [*range(24), 37, 58, 115, 221])
def test_the_end_is_as_the_last_words_say(seed: int) -> None:
    @on_bench
    async def main() -> None:
        choose = random.Random(seed)
        async with bench(settings=SETTINGS) as b:
            await b.make_class()
            await b.running()
            await b.client.patch(NODES, "node-m", OTHERS)
            for _ in range(ACTIONS):
                await choose.choice(DEEDS)(b, choose)
                await b.settle(choose.choice((0.0, 0.01, 0.5, 30.0, 700.0)))
            await b.settle(30)
            await agrees(b)
            b.writes.clear()
            await b.settle(60)
            assert not b.writes
            for ask in (annotate_machine, annotate_node):
                await ask(b, None)
            await b.set_ready("m", "True")
            await b.until_phase("Running", within=60)
            await b.settle(10)
            await is_as_if_nothing_was(b)

    main()


OTHERS: JSONObject = {
    "metadata": {"annotations": {ANNOTATION_SCALE_DOWN_DISABLED: "false"}},
    "spec": {
        "unschedulable": True,
        "taints": [{"key": "theirs", "effect": "NoSchedule", "value": "x"}],
    },
}


async def agrees(b: Bench) -> None:
    """The machine is kept if what counts says so; Node and machine say the same of it."""
    machine, node = await b.machine(), await b.node()
    word = node.metadata.annotations.get(ANNOTATION_PRESERVE)
    kept = await expiry(b) is not None
    if word != "nonsense":
        request = preserve_request(machine, node)
        assert kept == (request == "now" or is_kept_as_failed(machine, request))
        held = await condition(b)
        assert kept == (held is not None and held[0] == "True")
        assert (TAINT_PRESERVED in await taints(b)) == (kept and machine.phase == "Failed")
    complaint = find_own(machine.status, OwnCondition.PRESERVATION_APPLIED)
    invalid = "nonsense" in (word, machine.metadata.annotations.get(ANNOTATION_PRESERVE))
    assert (complaint is not None) == invalid


def is_kept_as_failed(machine: Machine, request: str) -> bool:
    return request in ("when-failed", "auto-preserved") and machine.phase == "Failed"


async def is_as_if_nothing_was(b: Bench) -> None:
    assert await expiry(b) is None
    node = await b.node()
    assert node.spec.unschedulable
    assert await taints(b) == ["theirs"]
    assert node.metadata.annotations[ANNOTATION_SCALE_DOWN_DISABLED] == "false"
    assert ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM not in node.metadata.annotations
    held = await condition(b)
    assert held is None or held[0] == "False"
    machine = await b.machine()
    assert not [name for name in machine.metadata.annotations if "preserve" in name]
    assert find_own(machine.status, OwnCondition.PRESERVATION_APPLIED) is None


async def say_on_machine(b: Bench, choose: random.Random) -> None:
    await annotate_machine(b, choose.choice(WORDS))


async def say_on_node(b: Bench, choose: random.Random) -> None:
    await annotate_node(b, choose.choice(WORDS))


async def break_down(b: Bench, _: random.Random) -> None:
    if (await b.machine()).phase != "Failed":
        await fail(b)


async def recover(b: Bench, _: random.Random) -> None:
    await b.set_ready("m", "True")


async def crash(b: Bench, _: random.Random) -> None:
    await b.crash()
    await b.start()


async def lose_an_answer(b: Bench, _: random.Random) -> None:
    b.faults.lose_answers(where=lambda r: r.method == "PATCH", times=1)


async def refuse_a_write(b: Bench, _: random.Random) -> None:
    b.faults.answer(500, method="PATCH", times=1)


DEEDS: tuple[Callable[[Bench, random.Random], Coroutine[object, object, None]], ...] = (
    say_on_machine,
    say_on_node,
    say_on_machine,
    say_on_node,
    break_down,
    recover,
    crash,
    lose_an_answer,
    refuse_a_write,
)


@pytest.mark.parametrize("phase", MachinePhase)
def test_no_change_of_phase_but_the_last_loses_the_end(phase: MachinePhase) -> None:
    kept = status.with_preservation(MachineStatus(), after(hours=96), after())
    changed = status.with_phase(kept, phase, after(hours=1)).current_status.preserve_expiry_time
    assert changed == (None if phase == MachinePhase.TERMINATING else after(hours=96))
