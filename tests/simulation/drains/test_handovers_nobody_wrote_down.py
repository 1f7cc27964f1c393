"""Volumes on their way without a record of it: who comes next waits for them nevertheless."""

from __future__ import annotations

from typing import Any

import pytest

from mcm.api.core import PERSISTENT_VOLUMES, PODS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.simulation.faults import Broken
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.drains.ledger import DrainLedger
from tests.simulation.drains.stage import (
    NAMESPACE,
    fleet,
    gather,
    is_gone,
    is_running,
    machine,
    stateful,
)

DETACH = 40
VICTIM = "victim"


async def begin(sim: Simulation, *, pods: int = 2, detach: object = DETACH) -> DrainLedger:
    """Pods with volumes that are slow to detach, on a machine that is to go."""
    ledger = DrainLedger(sim)
    await sim.apply(fleet(2))
    await sim.until(lambda: sim.running() == 2, within=60)
    await sim.apply([stateful("db", pods), machine(VICTIM)])
    await sim.until(lambda: is_running(sim, VICTIM), within=60)
    await gather(sim, VICTIM, ["db"])
    slow: JSONObject = {
        "metadata": {"annotations": {"simulation.machine.sapcloud.io/detach-seconds": str(detach)}}
    }
    for volume in sim.objects(PERSISTENT_VOLUMES):
        await sim.client.patch(PERSISTENT_VOLUMES, name_of(volume), slow)
    return ledger


async def end_drained(sim: Simulation, ledger: DrainLedger) -> None:
    await sim.until(lambda: is_gone(sim, VICTIM), within=400)
    assert not ledger.broken, ledger.broken
    assert set(ledger.accepted().values()) == {1}


def test_the_manager_ends_between_an_eviction_and_its_record() -> None:
    """The next process finds neither the pod nor a word of it, only the attachment."""

    async def main() -> None:
        async with Simulation(seed=11) as sim:
            ledger = await begin(sim)
            sim.faults.add(Broken.HANGS, where=lambda _: bool(ledger.asked))
            await sim.client.delete(MACHINES, VICTIM, namespace=NAMESPACE)
            await sim.until(lambda: len(ledger.asked) == 1, within=10)
            await sim.crash_manager()
            await sim.pass_time(5)
            assert ledger.asked[0].uid not in {_uid(pod) for pod in sim.objects(PODS)}
            sim.faults.clear()
            sim.start_manager()
            await end_drained(sim, ledger)
            first, last = ledger.asked
            assert DETACH <= last.at - first.at < DETACH + 10

    run_virtual(main)


def test_somebody_takes_a_pod_away_at_once_and_then_the_machine() -> None:
    """A deletion without grace leaves no moment in which the pod is seen to end."""

    async def main() -> None:
        async with Simulation(seed=12) as sim:
            ledger = await begin(sim)
            taken = await take_away(sim, "db-0")
            await sim.pass_time(1)
            await sim.client.delete(MACHINES, VICTIM, namespace=NAMESPACE)
            await end_drained(sim, ledger)
            (asked,) = ledger.asked
            assert DETACH <= asked.at - taken < DETACH + 10

    run_virtual(main)


def test_somebody_takes_a_pod_away_at_once_while_another_one_goes() -> None:
    async def main() -> None:
        async with Simulation(seed=13) as sim:
            ledger = await begin(sim, pods=3)
            await sim.client.delete(MACHINES, VICTIM, namespace=NAMESPACE)
            await sim.pass_time(20)
            (first,) = ledger.asked
            other = next(f"db-{n}" for n in range(3) if not first.pod.endswith(str(n)))
            taken = await take_away(sim, other)
            await end_drained(sim, ledger)
            _, last = ledger.asked
            assert DETACH <= last.at - taken < DETACH + 10

    run_virtual(main)


@pytest.mark.parametrize("crash", [False, True])
def test_a_volume_that_never_goes_is_waited_for_once(*, crash: bool) -> None:
    """Neither for ever, nor anew by who finds it still there."""

    async def main() -> None:
        async with Simulation(seed=14) as sim:
            ledger = await begin(sim, detach="never")
            await take_away(sim, "db-0")
            await sim.pass_time(1)
            await sim.client.delete(MACHINES, VICTIM, namespace=NAMESPACE)
            began = sim.clock.monotonic()
            if crash:
                await sim.pass_time(60)
                await sim.crash_manager()
                sim.start_manager()
            await sim.until(lambda: is_gone(sim, VICTIM), within=400)
            (asked,) = ledger.asked
            assert asked.at - began == pytest.approx(120, abs=1.5)
            assert ledger.ended[VICTIM] - began == pytest.approx(241, abs=5), "each has its limit"

    run_virtual(main)


async def take_away(sim: Simulation, pod: str) -> float:
    await sim.client.delete(PODS, pod, namespace=NAMESPACE, grace_period_seconds=0)
    return sim.clock.monotonic()


def _uid(pod: Any) -> str:
    return str(pod["metadata"]["uid"])
