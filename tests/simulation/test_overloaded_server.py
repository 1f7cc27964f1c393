"""A fleet whose API server bears less than is asked of it, and says so."""

from __future__ import annotations

from collections import Counter

import pytest

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.client.transport import Request
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from mcm.workqueue.token_bucket import TokenBucket

FLEET = 40
WRITES = 8
"""At least so many does a machine cost that is created."""


@pytest.mark.parametrize("bears", [20, 100])
def test_a_fleet_grows_as_fast_as_an_overloaded_server_can_bear(bears: int) -> None:
    """So many writes a second; what is more is refused, as the server's fairness does it. Leases
    are of another flow there, too."""

    async def main() -> None:
        async with Simulation(seed=11) as sim:
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=120)
            bucket, asked = TokenBucket(rate=bears, burst=bears / 4), Counter[bool]()

            def too_many(request: Request) -> bool:
                if "leases" in request.path:
                    return False
                borne = bucket.take(sim.clock.monotonic())
                asked[borne] += 1
                return not borne

            sim.faults.delay(0.01, watch=False)
            sim.faults.answer(
                429, method="POST|PATCH|PUT|DELETE", where=too_many, retry_after=1, watch=False
            )
            size = {"spec": {"replicas": FLEET}}
            await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", size, namespace="default")
            took = await sim.until(lambda: sim.running() == FLEET, within=600)
            assert took <= 2 * FLEET * WRITES / bears + 45, "seconds, VMs' own included"
            assert asked[False] <= asked[True], asked
            assert sim.losses == 0
            assert sim.phases()["Failed"] == 0

            sim.faults.clear()
            await sim.client.patch(
                MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": 0}}, namespace="default"
            )
            await sim.until(lambda: not sim.objects(MACHINES), within=120)

    run_virtual(main)
