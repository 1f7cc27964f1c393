"""What happened once is one event, also where answers to writes are lost."""

from __future__ import annotations

from collections import Counter

import pytest

from mcm.api.machine import MACHINE_DEPLOYMENTS
from mcm.api.meta import JSONObject
from mcm.events import CORE_EVENTS
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.thoroughness import part_of

_TO_LARGE: JSONObject = {"spec": {"template": {"spec": {"class": {"name": "large"}}}}}


@pytest.mark.parametrize("seed", part_of(range(4), one_in=4))
def test_a_rollout_tells_of_each_machine_once(seed: int) -> None:
    async def main() -> None:
        async with Simulation(seed=seed) as sim:
            sim.faults.lose_answers(path=r"/(machine|event)", probability=0.1)
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=200)
            await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", _TO_LARGE, namespace="default")
            await sim.pass_time(300)
            told = [_said(event) for event in sim.objects(CORE_EVENTS)]
            of_machines = Counter(
                (name, reason) for kind, name, reason, *_ in told if kind == "Machine"
            )
            assert len(of_machines) > 10 and set(of_machines.values()) == {1}
            assert max(Counter(told).values()) == 1
            assert [t for t in told if t[-1] > 1] == []

    run_virtual(main)


def _said(event: JSONObject) -> tuple[str, str, str, str, int]:
    about, series = event["involvedObject"], event.get("series")
    assert isinstance(about, dict)
    count = series["count"] if isinstance(series, dict) else 1
    return (about["kind"], about["name"], str(event["reason"]), str(event["message"]), int(count))
