"""How long drains take that need not wait, and what those that wait ask of the server."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson
import pytest

from mcm.api.core import PODS, VOLUME_ATTACHMENTS
from mcm.api.machine import MACHINES
from mcm.api.names import ANNOTATION_DRAIN_RECORD
from mcm.client.transport import Request
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.drains.many_nodes import (
    Manifest,
    budget,
    disk,
    machine,
    objects,
    pod,
    without_machines,
)


class RecordsWritten:
    """Counts the writes of drains' records, by machine."""

    def __init__(self, sim: Simulation) -> None:
        self.by_machine: Counter[str] = Counter()
        sim.faults.delay(0.0, method="PATCH", path=r"/machines/", where=self._note)

    def _note(self, request: Request) -> bool:
        body = orjson.loads(request.body)
        if ANNOTATION_DRAIN_RECORD in body.get("metadata", {}).get("annotations", {}):
            self.by_machine[request.path.rpartition("/")[2]] += 1
        return False


def test_pods_that_share_a_volume_leave_together() -> None:
    async def main() -> None:
        async with Simulation(seed=51) as sim:
            shared = [pod(f"p{n}", "m", claims=["shared"], grace=29) for n in range(20)]
            await _fill(sim, [*disk("shared", mode="ReadWriteMany"), *shared], pods=20)
            assert len(objects(sim, VOLUME_ATTACHMENTS)) == 1
            await sim.client.delete(MACHINES, "m", namespace="default")
            passed = await sim.until(lambda: len(sim.objects(MACHINES)) == 1, within=40)
            assert 29 <= passed <= 32  # with the deletion of the VM

    run_virtual(main)


def test_the_record_is_written_once_for_each_pod_with_a_volume() -> None:
    async def main() -> None:
        async with Simulation(seed=52) as sim:
            disks = [m for n in range(8) for m in disk(f"d{n}")]
            with_disks = [pod(f"v{n}", "m", claims=[f"d{n}"]) for n in range(8)]
            without = [pod(f"p{n}", "other", grace=5) for n in range(8)]
            await _fill(sim, [*disks, *with_disks, *without], pods=16)
            records = RecordsWritten(sim)
            for name in ("m", "other"):
                await sim.client.delete(MACHINES, name, namespace="default")
            await sim.until(lambda: not sim.objects(MACHINES), within=60)
            assert records.by_machine.keys() == {"m"}
            assert 8 <= records.by_machine["m"] <= 9

    run_virtual(main)


def test_what_holds_a_drain_up_is_told_now_and_then_however_often_it_looks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with Simulation(seed=54) as sim:
            others = [pod(f"p{n}", "m", grace=30 + 7 * n) for n in range(30)]
            kept = [budget("kept", maxUnavailable=0), pod("kept", "m", app="kept")]
            await _fill(sim, [*kept, *others], pods=31)
            await sim.client.delete(MACHINES, "m", namespace="default")
            await sim.until(lambda: len(objects(sim, PODS)) == 1, within=270)
            assert _told(caplog) == 1
            await sim.pass_time(1800)
            assert 1 <= _told(caplog) <= 7

    with caplog.at_level(logging.WARNING):
        run_virtual(main)


def test_who_waits_asks_nothing() -> None:
    """For a pod that takes its time, for one that a budget holds, for volumes that do not leave."""

    async def main() -> None:
        async with Simulation(seed=53) as sim:
            stuck = list(disk("stuck"))
            stuck[0]["spec"]["csi"]["volumeAttributes"]["detachSeconds"] = "never"
            await _fill(
                sim,
                [
                    *stuck,
                    budget("kept", maxUnavailable=0),
                    pod("slow", "m", grace=600),
                    pod("kept", "m", app="kept"),
                    pod("mounts", "m", claims=["stuck"]),
                ],
                pods=3,
            )
            await sim.client.delete(MACHINES, "m", namespace="default")
            await sim.pass_time(45)  # until that is shown
            before = _asked(sim)
            await sim.pass_time(60)
            assert _asked(sim) - before == Counter()
            await sim.pass_time(60)  # until nobody waits for the volume any more, which is shown
            before = _asked(sim)
            await sim.pass_time(120)
            assert _asked(sim) - before == Counter()
            assert {p["metadata"]["name"] for p in objects(sim, PODS)} == {"slow", "kept"}

    run_virtual(main)


async def _fill(sim: Simulation, manifests: Iterable[Manifest], *, pods: int) -> None:
    """Have two machines that may be drained for hours, and pods that run on them."""
    await sim.apply(without_machines())
    await sim.apply(machine(name, drainTimeout="2h") for name in ("m", "other"))
    await sim.until(lambda: sim.running() == 2, within=120)
    await sim.apply(manifests)
    await sim.until(lambda: _running(sim) == pods, within=120)
    await sim.pass_time(10)


def _told(caplog: pytest.LogCaptureFixture) -> int:
    return sum("(DrainBlocked)" in record.getMessage() for record in caplog.records)


def _running(sim: Simulation) -> int:
    return sum(p["status"].get("phase") == "Running" for p in objects(sim, PODS))


def _asked(sim: Simulation) -> Counter[tuple[Any, ...]]:
    """Return the manager's requests, but for its lease, watches that end in time, and its looks
    each minute whether the servers answer at all, which find nothing."""
    return Counter(
        {
            (kind.verb, kind.resource, kind.subresource): count
            for kind, count in sim.server.requests.snapshot().items()
            if kind.agent == "mcm"
            and kind.resource != "leases.coordination.k8s.io"
            and kind.verb != "watch"
            and (kind.verb, kind.code) != ("get", 404)
        }
    )
