"""The manager is killed at its first write of a flow, then at its second, and so on to the last.

Each time its write is lost on the way there, or only its answer on the way back; nothing of the
process gets through any more, and another one begins with what it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from itertools import count
from typing import Any, TypeAlias, final

import pytest

from mcm.api.core import NODES, PODS, SECRETS
from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject, Resource, T
from mcm.api.names import (
    ANNOTATION_PRESERVE,
    ANNOTATION_PRIORITY,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    TAINT_PRESERVED,
)
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.sandbox.apiserver.store import Change, ChangeType
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.ends_of_the_manager import ending
from tests.thoroughness import part_of

NAMESPACE = "default"
FLEET = 2
OPTIONS = Options(settings=ControllerSettings(health_timeout=timedelta(seconds=20)))


# ---- the flows -----------------------------------------------------------------------------------

Act: TypeAlias = Callable[[Simulation, int], Coroutine[object, object, None]]


async def creation(sim: Simulation, _: int) -> None:
    await scale(sim, FLEET + 1)
    await until(sim, lambda: sim.running() == FLEET + 1)


async def its_end(sim: Simulation, _: int) -> None:
    """Of one that has pods, so that it is drained first."""
    busy = next(pod["spec"]["nodeName"] for pod in found(sim, PODS))
    first: JSONObject = {"metadata": {"annotations": {ANNOTATION_PRIORITY: "1"}}}
    await sim.client.patch(MACHINES, busy, first, namespace=NAMESPACE)
    await scale(sim, FLEET)
    await until(sim, lambda: len(sim.objects(MACHINES)) == FLEET and not one(sim, MACHINES, busy))


async def hot_update(sim: Simulation, number: int) -> None:
    tags = {resource: {"turn": str(number)} for resource in ("vm", "network", "disk")}
    patch: JSONObject = {"providerSpec": {"tags": tags}}
    await sim.client.patch(MACHINE_CLASSES, "small", patch, namespace=NAMESPACE)
    await until(sim, lambda: all(vm["spec"].get("tags") == tags for vm in found(sim, VMS)))
    await until(sim, lambda: not any(INFLIGHT in annotations_of(m) for m in found(sim, MACHINES)))


async def update_in_place(sim: Simulation, number: int) -> None:
    """The test plays the set that selects and takes over, and the node agent."""
    node = name_of(sim.objects(MACHINES)[number % FLEET])
    selected = {LABEL_CANDIDATE_FOR_UPDATE: "true", LABEL_SELECTED_FOR_UPDATE: "true"}
    await label(sim, node, selected)
    await until_stage(sim, node, Stage.READY)
    await label(sim, node, {LABEL_UPDATE_RESULT: "successful"})
    await until(sim, lambda: in_place_reason(sim, node) == "UpdateSuccessful")
    await until_stage(sim, node, Stage.SUCCESSFUL)
    await label(sim, node, {**dict.fromkeys(selected), LABEL_UPDATE_RESULT: None})
    await sim.client.patch(NODES, node, {"spec": {"unschedulable": False}})
    await until(sim, lambda: sim.running() == FLEET)


async def preservation(sim: Simulation, _: int) -> None:
    """Of one that fails meanwhile, and recovers."""
    name = name_of(sim.objects(MACHINES)[0])
    await preserve(sim, name, "when-failed")
    await power(sim, name, "Off")
    await until(sim, lambda: phase(sim, name) == "Failed")
    await until(sim, lambda: TAINT_PRESERVED in taints(sim, name) and expires(sim, name))
    await sim.pass_time(5)
    assert phase(sim, name) == "Failed"
    await power(sim, name, "On")
    await until(sim, lambda: phase(sim, name) == "Running")
    await until(sim, lambda: TAINT_PRESERVED not in taints(sim, name) and not expires(sim, name))
    await preserve(sim, name, "now")
    await until(sim, lambda: expires(sim, name))
    await preserve(sim, name, None)
    await until(sim, lambda: not expires(sim, name))


async def nothing(_: Simulation, __: int) -> None:
    """The flow leaves the fleet as it found it."""


@pytest.mark.parametrize(
    "arrived",
    part_of([True, False], one_in=2, in_ci=2),
    ids=lambda arrived: "answer lost" if arrived else "lost",
)
@pytest.mark.parametrize(
    ("before", "flow", "after", "least"),
    [
        (nothing, creation, its_end, 14),
        (creation, its_end, nothing, 15),
        (nothing, hot_update, nothing, 12),
        (nothing, update_in_place, nothing, 16),
        (nothing, preservation, nothing, 26),
    ],
    ids=["creation and initialization", "deletion", "hot update", "in place", "preservation"],
)
def test_the_manager_may_end_at_any_write(
    before: Act, flow: Act, after: Act, least: int, *, arrived: bool
) -> None:
    """``least``: so many ends there are at least, or the flow was not what it claims to be."""

    async def main() -> None:
        async with Simulation(seed=21, options=OPTIONS, node_grace=25.0) as sim:
            vms = Vms(sim)
            await begin(sim)
            for number in count(1):
                await before(sim, number)
                known = {name_of(vm) for vm in sim.objects(VMS)}
                async with ending(sim, number, arrived=arrived) as end:
                    await flow(sim, number)
                if flow is not creation and flow is not its_end:
                    assert {name_of(vm) for vm in sim.objects(VMS)} == known
                await after(sim, number)
                await until(sim, lambda: is_whole(sim))
                vms.check()
                if not end.came:
                    break
            assert number > least
            written = sim.server.requests.writes(agent="mcm")
            await sim.pass_time(60)
            assert sim.server.requests.writes(agent="mcm") == written

    run_virtual(main)


# ---- what must hold ------------------------------------------------------------------------------


@final
class Vms:
    """Every VM that there ever was."""

    def __init__(self, sim: Simulation) -> None:
        self._made: Counter[str] = Counter()
        self._there: set[str] = set()
        self._most = 0
        storage = f"{VMS.plural}.{VMS.group}"
        sim.server.store.subscribe(self._see, storage)

    def _see(self, change: Change) -> None:
        if change.type is ChangeType.ADDED:
            self._made[change.stored.name] += 1
            self._there.add(change.stored.name)
        elif change.type is ChangeType.DELETED:
            self._there.discard(change.stored.name)
        self._most = max(self._most, len(self._there))

    def check(self) -> None:
        assert set(self._made.values()) == {1}, "none is made twice"
        assert self._most <= FLEET + 1


def is_whole(sim: Simulation) -> bool:
    """Each machine runs, each has its VM, initialised, and its Node, and nothing is left over."""
    names = {name_of(m) for m in sim.objects(MACHINES)}
    return (
        len(names) == sim.running() == FLEET
        and {name_of(vm) for vm in sim.objects(VMS)} == names
        and {name_of(node) for node in sim.objects(NODES)} == names
        and all(INITIALIZED in annotations_of(vm) for vm in sim.objects(VMS))
        and not any(name_of(s).startswith("bootstrap-token-") for s in sim.objects(SECRETS))
        and not any(node["spec"].get("unschedulable") for node in found(sim, NODES))
        and not any(taints(sim, name) for name in names)
        and all(own_conditions(m) == set() for m in found(sim, MACHINES))
    )


# ---- the user, and looking -----------------------------------------------------------------------

VMS = VIRTUAL_MACHINES
INITIALIZED = "simulation.machine.sapcloud.io/initialized"
INFLIGHT = "inflight-providerspecs"
WORKLOAD: JSONObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "app", "namespace": NAMESPACE},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "app"}},
        "template": {
            "metadata": {"labels": {"app": "app"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "c", "image": "i"}],
            },
        },
    },
}


async def begin(sim: Simulation) -> None:
    await sim.apply(samples.load())
    patch: JSONObject = {"providerSpec": {"needsInitialization": True}}
    await sim.client.patch(MACHINE_CLASSES, "small", patch, namespace=NAMESPACE)
    await scale(sim, 0)
    await until(sim, lambda: not sim.objects(MACHINES) and not sim.objects(VMS))
    await scale(sim, FLEET)
    await sim.apply([WORKLOAD])
    await until(sim, lambda: is_whole(sim))


async def until(sim: Simulation, condition: Callable[[], bool]) -> None:
    await sim.until(condition, within=300)


async def scale(sim: Simulation, replicas: int) -> None:
    patch: JSONObject = {"spec": {"replicas": replicas}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", patch, namespace=NAMESPACE)


async def label(sim: Simulation, node: str, labels: dict[str, Any]) -> None:
    await sim.client.patch(NODES, node, {"metadata": {"labels": labels}})


async def preserve(sim: Simulation, node: str, value: str | None) -> None:
    patch: JSONObject = {"metadata": {"annotations": {ANNOTATION_PRESERVE: value}}}
    await sim.client.patch(NODES, node, patch)


async def power(sim: Simulation, vm: str, state: str) -> None:
    await sim.client.patch(VMS, vm, {"spec": {"powerState": state}}, namespace=NAMESPACE)


async def until_stage(sim: Simulation, name: str, stage: Stage) -> None:
    for _ in range(300):
        if marks_of(await sim.client.get(NODES, name)).stage is stage:
            return
        await sim.pass_time(1)
    raise AssertionError(f"{name} does not come to {stage}\n{sim.describe()}")


def found(sim: Simulation, resource: Resource[T]) -> list[dict[str, Any]]:
    return sim.objects(resource)


def one(sim: Simulation, resource: Resource[T], name: str) -> dict[str, Any]:
    return next((o for o in found(sim, resource) if name_of(o) == name), {})


def annotations_of(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def phase(sim: Simulation, name: str) -> str:
    return str(one(sim, MACHINES, name)["status"]["currentStatus"]["phase"])


def expires(sim: Simulation, name: str) -> bool:
    current = one(sim, MACHINES, name)["status"]["currentStatus"]
    return current.get("preserveExpiryTime") is not None


def taints(sim: Simulation, name: str) -> set[str]:
    return {t["key"] for t in one(sim, NODES, name).get("spec", {}).get("taints", ())}


def in_place_reason(sim: Simulation, name: str) -> str:
    conditions = one(sim, MACHINES, name)["status"].get("conditions", ())
    return next((str(c["reason"]) for c in conditions if c["type"] == "InPlaceUpdate"), "")


def own_conditions(machine: dict[str, Any]) -> set[str]:
    types = {c["type"] for c in machine["status"].get("conditions", ())}
    return types & {
        "Initialized",
        "ProviderSpecApplied",
        "PreservationApplied",
        "Replaceable",
        "Drained",
    }
