from __future__ import annotations

import asyncio
import random

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_SETS, MACHINES
from mcm.clock import LoopClock
from mcm.informers import InformerFactory
from mcm.simulation.virtualtime import run_virtual
from tests.unit.informers.apiserver import NAMESPACE, ApiServer
from tests.unit.informers.mirror import EPOCH


def make(
    server: ApiServer, *, registry: CollectorRegistry | None = None, name: str = ""
) -> InformerFactory:
    return InformerFactory(
        server,
        clock=LoopClock(EPOCH),
        namespace=NAMESPACE,
        registry=registry,
        name=name,
        randomness=random.Random(0),
    )


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_one_informer_for_each_resource_and_namespace() -> None:
    async def main() -> None:
        factory = make(ApiServer())
        machines = factory.informer(MACHINES)
        assert factory.informer(MACHINES) is machines
        assert factory.informer(MACHINES, namespace=NAMESPACE) is machines
        assert factory.informer(MACHINES, namespace="") is not machines
        assert factory.store(MACHINES) is machines.store
        assert machines.namespace == NAMESPACE
        assert factory.informer(NODES).namespace == ""
        assert factory.informer(NODES, namespace="x") is factory.informer(NODES)
        assert factory.writer is factory.writer

    run_virtual(main)


def test_it_runs_all_of_them_and_waits_for_all() -> None:
    async def main() -> None:
        server = ApiServer()
        server.put("a")
        factory = make(server)
        one, two = factory.informer(MACHINES), factory.informer(MACHINES, namespace="")
        task = asyncio.create_task(factory.run())
        await factory.wait_synced()
        assert one.synced and two.synced
        assert [len(i.store) for i in factory.informers()] == [1, 1]
        await stop(task)
        assert server.open_streams == 0

    run_virtual(main)


def test_after_the_start_there_are_no_new_ones_and_no_second_start() -> None:
    async def main() -> None:
        factory = make(ApiServer())
        machines = factory.informer(MACHINES)
        task = asyncio.create_task(factory.run())
        await factory.wait_synced()
        assert factory.informer(MACHINES) is machines
        with pytest.raises(RuntimeError, match="machinesets"):
            factory.informer(MACHINE_SETS)
        with pytest.raises(RuntimeError):
            await factory.run()
        await stop(task)

    run_virtual(main)


def test_a_factory_without_informers_runs_until_it_is_stopped() -> None:
    async def main() -> None:
        task = asyncio.create_task(make(ApiServer()).run())
        await LoopClock(EPOCH).sleep(100)
        assert not task.done()
        await stop(task)

    run_virtual(main)


def test_problems_name_what_is_not_to_be_relied_on() -> None:
    async def main() -> None:
        clock = LoopClock(EPOCH)
        server = ApiServer()
        factory = make(server, name="control")
        factory.informer(MACHINES)
        where = f"control/{MACHINES.name}"
        assert factory.problems() == {where: "the first list is not complete"}
        task = asyncio.create_task(factory.run())
        await factory.wait_synced()
        assert factory.problems() == {}
        server.down = True
        server.put("a")
        await clock.sleep(200)
        assert factory.problems() == {where: "the server has been silent for 200 s"}
        await stop(task)

    run_virtual(main)


def test_two_clusters_share_a_registry() -> None:
    async def main() -> None:
        registry = CollectorRegistry()
        server = ApiServer()
        server.put("a")
        factories = [make(server, registry=registry, name=name) for name in ("control", "target")]
        tasks = []
        for factory in factories:
            factory.informer(MACHINES)
            tasks.append(asyncio.create_task(factory.run()))
            await factory.wait_synced()
        await LoopClock(EPOCH).sleep(1)
        server.put("a", "Failed")
        await LoopClock(EPOCH).sleep(2)

        def read(name: str, cluster: str, **labels: str) -> float | None:
            place = {"resource": MACHINES.name, "namespace": NAMESPACE}
            whole = {"name": f"{cluster}/{MACHINES.name}", "cluster": cluster, **place}
            return registry.get_sample_value(name, {**whole, **labels})

        for cluster in ("control", "target"):
            assert read("mcm_reflector_lists_total", cluster) == 1
            assert read("mcm_reflector_watches_total", cluster) == 1
            assert read("mcm_reflector_events_total", cluster, type="MODIFIED") == 1
            assert read("mcm_store_objects", cluster) == 1
            assert read("mcm_informer_synced", cluster) == 1
            assert read("mcm_reflector_last_heard_seconds", cluster) == pytest.approx(2.0)
            assert read("mcm_reflector_short_watches_total", cluster) == 0
        text = generate_latest(registry).decode()
        assert text.count("# TYPE mcm_reflector_lists_total") == 1
        for task in tasks:
            await stop(task)

    run_virtual(main)


def test_failures_are_counted_by_their_kind() -> None:
    async def main() -> None:
        registry = CollectorRegistry()
        factory = make(ApiServer(down=True), registry=registry, name="x")
        factory.informer(MACHINES)
        task = asyncio.create_task(factory.run())
        await LoopClock(EPOCH).sleep(10)
        named = {"name": f"x/{MACHINES.name}", "cluster": "x"}
        labels = {**named, "resource": MACHINES.name, "namespace": NAMESPACE}
        count = registry.get_sample_value(
            "mcm_reflector_failures_total", {**labels, "error": "ConnectionRefused"}
        )
        assert count is not None and count > 3
        await stop(task)

    run_virtual(main)
