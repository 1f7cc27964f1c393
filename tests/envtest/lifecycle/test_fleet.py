"""A fleet's whole life on a real API server, with no more rights than the chart grants.

No controller of Kubernetes runs there: nobody collects garbage, watches nodes or counts budgets.
"""

from __future__ import annotations

import logging

import pytest

from mcm.api.names import ANNOTATION_DRAIN_RECORD
from mcm.drain.record import read_record
from tests.envtest.contract.objects import budget, pod
from tests.envtest.control_plane import ControlPlane
from tests.envtest.lifecycle.fleet import GROUP, Fleet
from tests.envtest.lifecycle.running import RunningManager, simulated_cloud

pytestmark = pytest.mark.envtest


async def test_a_fleet_comes_up_grows_rolls_and_goes_and_leaves_nothing(
    control_plane: ControlPlane, fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="mcm")
    namespace = fleet.admin.namespace
    async with (
        simulated_cloud(control_plane, namespace) as cloud,
        RunningManager(control_plane, namespace) as manager,
    ):
        await fleet.create(replicas=3)
        await fleet.until(lambda: fleet.runs(small=3), what="three machines run")
        await fleet.scale(6)
        await fleet.until(lambda: fleet.runs(small=6), what="six machines run")
        assert len(await fleet.nodes()) == 6
        await fleet.roll_to("large")
        await fleet.until(lambda: fleet.runs(large=6), within=60, what="all are of the new class")
        await fleet.delete()
        await fleet.until(lambda: _nothing_left(fleet), what="nothing is left")
        await fleet.delete_classes()
        await fleet.until(lambda: _no_classes_left(fleet), what="the classes are released")
        assert await fleet.tokens() == []
        await _events_were_told(fleet)
    assert manager.transport.forbidden == cloud.forbidden == []
    assert not [r.getMessage() for r in caplog.records if "orbidden" in r.getMessage()]


async def test_a_drain_obeys_a_budget(control_plane: ControlPlane, fleet: Fleet) -> None:
    namespace, admin = fleet.admin.namespace, fleet.admin
    async with (
        simulated_cloud(control_plane, namespace) as cloud,
        RunningManager(control_plane, namespace) as manager,
    ):
        await fleet.create(replicas=1)
        await fleet.until(lambda: fleet.runs(small=1), what="the machine runs")
        (node,) = await fleet.nodes()
        await admin.create(admin.pods(), pod("web", {"app": "web"}, nodeName=node))
        budgets = admin.path("poddisruptionbudgets", group="policy/v1")
        await admin.create(budgets, budget("web", {"app": "web"}))
        await fleet.allow_disruptions("web", 0)
        await fleet.until(lambda: _pod_runs(fleet), what="the pod runs")
        await fleet.scale(0)
        eviction = f"POST {admin.pods('web')}/eviction"
        await fleet.until(lambda: _holds_a_pod(fleet), what="the drain says since when it waits")
        # What the budget does not allow is not even asked for.
        assert not [line for _, line in manager.transport.answers if line == eviction]
        assert "deletionTimestamp" not in (await admin.get(admin.pods("web")))["metadata"]
        await fleet.allow_disruptions("web", 1)
        await fleet.until(lambda: _nothing_running(fleet), within=60, what="the machine is gone")
        assert manager.transport.answers[201, eviction] == 1
        assert await admin.gone(admin.pods("web"))
    assert manager.transport.forbidden == cloud.forbidden == []


async def test_a_machine_deleted_by_hand_is_replaced_and_the_others_live_on(
    control_plane: ControlPlane, fleet: Fleet
) -> None:
    namespace, admin = fleet.admin.namespace, fleet.admin
    async with (
        simulated_cloud(control_plane, namespace),
        RunningManager(control_plane, namespace),
    ):
        await fleet.create(replicas=3)
        await fleet.until(lambda: fleet.runs(small=3), what="three machines run")
        before = await _uids(fleet)
        victim = next(iter(before))
        await admin.delete(fleet.path("machines", victim))
        await fleet.until(lambda: _replaced(fleet, victim), what="the deleted machine is replaced")
        after = await _uids(fleet)
        assert len(after) == 3
        assert {n: u for n, u in before.items() if n != victim}.items() <= after.items()


async def _nothing_left(fleet: Fleet) -> bool:
    kinds = ("machinedeployments", "machinesets", "machines")
    left = [await fleet.admin.names(fleet.path(kind)) for kind in kinds]
    return not any((*left, await fleet.vms(), await fleet.nodes()))


async def _nothing_running(fleet: Fleet) -> bool:
    return not (await fleet.machines() or await fleet.vms() or await fleet.nodes())


async def _no_classes_left(fleet: Fleet) -> bool:
    classes = await fleet.admin.names(fleet.path("machineclasses"))
    return not classes and await fleet.admin.gone(fleet.admin.secrets("cloud"))


async def _pod_runs(fleet: Fleet) -> bool:
    found = await fleet.admin.get(fleet.admin.pods("web"))
    return bool(found["status"].get("phase") == "Running")


async def _holds_a_pod(fleet: Fleet) -> bool:
    records = [
        read_record(machine["metadata"].get("annotations", {}).get(ANNOTATION_DRAIN_RECORD))
        for machine in await fleet.machines()
    ]
    return any(found.record.held_since for found in records)


async def _uids(fleet: Fleet) -> dict[str, str]:
    return {m["metadata"]["name"]: m["metadata"]["uid"] for m in await fleet.machines()}


async def _replaced(fleet: Fleet, victim: str) -> bool:
    return victim not in await _uids(fleet) and await fleet.runs(small=3)


async def _events_were_told(fleet: Fleet) -> None:
    """Both spellings of the API show what happened, about objects of our group."""
    events = (await fleet.admin.get(fleet.admin.path("events", group="events.k8s.io/v1")))["items"]
    regarding = {(e["regarding"]["apiVersion"], e["regarding"]["kind"]) for e in events}
    assert {group for group, _ in regarding} == {GROUP, "coordination.k8s.io/v1"}
    assert {kind for _, kind in regarding} >= {"Machine", "MachineDeployment", "Lease"}
    assert {event["reportingController"] for event in events} == {"machine-controller-manager"}
