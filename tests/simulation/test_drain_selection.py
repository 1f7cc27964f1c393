"""What pods ask of the drains of their nodes, in the life of a whole fleet."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcm.api.core import NODES, PODS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.api.workloads import DEPLOYMENTS
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual

NAMESPACE = "default"
DRAIN = "machine.sapcloud.io/drain"
WAVE = "machine.sapcloud.io/drain-wave"
MARK = "machine.sapcloud.io/drain-surge"
EVERYTHING: list[JSONObject] = [{"operator": "Exists"}]


def deployment(
    name: str, *, annotations: dict[str, str] | None = None, replicas: int = 1, **spec: object
) -> JSONObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations or {}},
                "spec": {
                    "containers": [{"name": "main", "image": "app:1"}],
                    "terminationGracePeriodSeconds": 5,
                    **spec,
                },
            },
        },
    }


def pods_of(sim: Simulation, app: str) -> Iterator[Any]:
    for pod in sim.objects(PODS):
        metadata: Any = pod["metadata"]
        if metadata.get("labels", {}).get("app") == app:
            yield pod


def is_ready(pod: Any) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in conditions
    )


def node_of(sim: Simulation, app: str) -> str:
    return next(str(pod["spec"].get("nodeName", "")) for pod in pods_of(sim, app))


@contextmanager
def always_serving(sim: Simulation, *apps: str) -> Iterator[None]:
    """At each change of a pod, one of each app is Ready."""
    gaps: list[str] = []
    watching = True

    def look() -> None:
        gaps.extend(a for a in apps if watching and not any(map(is_ready, pods_of(sim, a))))

    sim.on_change(PODS, look)
    yield
    watching = False
    assert not gaps, f"for a moment nobody served for {set(gaps)}"


def with_fleet(
    scenario: Callable[[Simulation], Coroutine[Any, Any, None]], *workloads: JSONObject
) -> None:
    async def main() -> None:
        async with Simulation(seed=3) as sim:
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=120)
            await sim.apply(workloads)
            apps = [name_of(workload) for workload in workloads]
            await sim.until(
                lambda: all(any(map(is_ready, pods_of(sim, app))) for app in apps), within=60
            )
            await scenario(sim)

    run_virtual(main)


async def delete_machine_of(sim: Simulation, app: str) -> str:
    node = node_of(sim, app)
    await sim.client.delete(MACHINES, node, namespace=NAMESPACE)
    return node


async def until_gone(sim: Simulation, machine: str, *, within: float = 120.0) -> float:
    return await sim.until(
        lambda: all(name_of(m) != machine for m in sim.objects(MACHINES)), within=within
    )


def events(sim: Simulation, reason: str) -> list[str]:
    found: list[Any] = [
        *sim.server.objects("", "events"),
        *sim.server.objects("events.k8s.io", "events"),
    ]
    return [str(e.get("note") or e.get("message")) for e in found if e.get("reason") == reason]


@pytest.mark.parametrize("kind", ["scale", "restart"])
def test_a_single_pod_that_asks_for_it_always_serves_while_its_machine_goes(kind: str) -> None:
    async def scenario(sim: Simulation) -> None:
        with always_serving(sim, "single"):
            machine = await delete_machine_of(sim, "single")
            await until_gone(sim, machine)
            await sim.until(lambda: not marked(sim), within=30)
            await sim.until(lambda: len(list(pods_of(sim, "single"))) == 1, within=30)
        (found,) = sim.objects(DEPLOYMENTS)
        spec: Any = found["spec"]
        assert spec["replicas"] == 1

    def marked(sim: Simulation) -> bool:
        (found,) = sim.objects(DEPLOYMENTS)
        metadata: Any = found["metadata"]
        return MARK in {**metadata.get("labels", {}), **metadata.get("annotations", {})}

    with_fleet(scenario, deployment("single", annotations={MARK: kind}))


def test_a_manager_that_is_killed_in_the_midst_of_it_scales_once_and_back() -> None:
    async def scenario(sim: Simulation) -> None:
        sizes: list[int] = []

        def look() -> None:
            (found,) = sim.objects(DEPLOYMENTS)
            spec: Any = found["spec"]
            sizes.append(spec["replicas"])

        sim.on_change(DEPLOYMENTS, look)
        with always_serving(sim, "single"):
            machine = await delete_machine_of(sim, "single")
            await sim.until(lambda: 2 in sizes, within=30)
            await sim.crash_manager()
            await sim.pass_time(20)
            sim.start_manager()
            await until_gone(sim, machine)
            await sim.until(lambda: sizes[-1] == 1, within=60)
        changes = [size for before, size in zip([1, *sizes], sizes, strict=False) if before != size]
        assert changes == [2, 1]

    with_fleet(scenario, deployment("single", annotations={MARK: "scale"}))


def test_what_is_put_back_onto_the_node_for_ever_is_left_there_and_named() -> None:
    async def scenario(sim: Simulation) -> None:
        home = name_of(sim.objects(NODES)[0])
        await sim.client.patch(NODES, home, {"metadata": {"labels": {"home": "yes"}}})
        await sim.apply([homing])
        await sim.until(lambda: any(map(is_ready, pods_of(sim, "homing"))), within=60)
        machine = await delete_machine_of(sim, "homing")
        assert await until_gone(sim, machine) < 60
        (note,) = set(events(sim, "DrainRemark"))
        assert "ReplicaSet default/homing-" in note and "twice" in note

    homing = deployment("homing", tolerations=EVERYTHING, nodeSelector={"home": "yes"})
    with_fleet(scenario)


def test_pods_go_in_waves_and_some_do_not() -> None:
    async def scenario(sim: Simulation) -> None:
        node = name_of(sim.objects(NODES)[0])
        await sim.apply(
            [
                pod("first", node, annotations={WAVE: "-1"}, grace=10),
                pod("second", node),
                pod("third", node, annotations={WAVE: "1"}),
                pod("driver", node, priority=2_000_001_000),
                pod("spared", node, labels={DRAIN: "skip"}),
                pod("job", node, labels={DRAIN: "wait-completed"}),
                pod("typo", node, labels={DRAIN: "skp"}),
            ]
        )
        await sim.until(lambda: len(ready_on(sim, node)) == 7, within=60)
        begun: list[str] = []

        def look() -> None:
            begun.extend(n for n in leaving(sim) if n not in begun)

        sim.on_change(PODS, look)
        await sim.client.delete(MACHINES, node, namespace=NAMESPACE)
        await sim.until(lambda: "third" in begun, within=120)
        await sim.pass_time(30)
        assert begun[0] == "first" and set(begun[1:3]) == {"second", "typo"}
        assert begun[3:] == ["third"], "the driver serves the job that is awaited"
        assert set(ready_on(sim, node)) == {"driver", "spared", "job"}
        done: JSONObject = {"status": {"phase": "Succeeded"}}
        await sim.client.patch(PODS, "job", done, namespace=NAMESPACE, subresource="status")
        await until_gone(sim, node)
        assert begun[4:] == ["driver"]  # a completed pod ends at once
        assert all(name_of(p) != "job" for p in sim.objects(PODS))
        (note,) = set(events(sim, "DrainRemark"))
        assert "pod default/typo" in note and "'skp'" in note

    with_fleet(scenario)


def pod(
    name: str,
    node: str,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    priority: int = 0,
    grace: int = 2,
) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {
            "nodeName": node,
            "priority": priority,
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "main", "image": "app:1"}],
        },
    }


def ready_on(sim: Simulation, node: str) -> list[str]:
    found: list[Any] = sim.objects(PODS)
    return [name_of(p) for p in found if p["spec"].get("nodeName") == node and is_ready(p)]


def leaving(sim: Simulation) -> list[str]:
    found: list[Any] = sim.objects(PODS)
    return [name_of(p) for p in found if "deletionTimestamp" in p["metadata"]]
