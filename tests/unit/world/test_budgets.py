from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest

from mcm.api.core import PodDisruptionBudgetSpec
from mcm.api.timestamps import rfc3339
from mcm.sandbox.world.budgets import allowance
from mcm.sandbox.world.kinds import Pod
from tests.unit.world.manifests import bare_node, budget, pod, workload
from tests.unit.world.rig import Rig, at, on_rig

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_pod(name: str, *, ready: bool = True, terminating: bool = False, age: float = 3600) -> Pod:
    raw = pod(name)
    meta: dict[str, object] = {"name": name}
    if terminating:
        meta["deletionTimestamp"] = rfc3339(NOW)
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    stamped = {"creationTimestamp": rfc3339(NOW - timedelta(seconds=age)), **meta}
    return msgspec.convert({**raw, "metadata": stamped, "status": status}, Pod)


def pods(ready: int, broken: int = 0) -> list[Pod]:
    return [a_pod(f"p{i}", ready=i < ready) for i in range(ready + broken)]


@pytest.mark.parametrize(
    ("spec", "ready", "broken", "numbers"),
    [
        (PodDisruptionBudgetSpec(min_available=2), 3, 0, (3, 3, 2, 1)),
        (PodDisruptionBudgetSpec(min_available=2), 2, 1, (3, 2, 2, 0)),
        (PodDisruptionBudgetSpec(min_available=9), 3, 0, (3, 3, 9, 0)),
        (PodDisruptionBudgetSpec(min_available="50%"), 3, 0, (5, 3, 3, 0)),
        (PodDisruptionBudgetSpec(max_unavailable=1), 4, 0, (5, 4, 4, 0)),
        (PodDisruptionBudgetSpec(max_unavailable=2), 4, 0, (5, 4, 3, 1)),
        (PodDisruptionBudgetSpec(max_unavailable="30%"), 5, 0, (5, 5, 3, 2)),
        (PodDisruptionBudgetSpec(max_unavailable=9), 5, 0, (5, 5, 0, 5)),
        (PodDisruptionBudgetSpec(), 2, 0, (2, 2, 1, 1)),
        (PodDisruptionBudgetSpec(min_available=0), 0, 0, (0, 0, 0, 0)),
    ],
)
def test_a_budget_allows_what_serves_beyond_what_is_desired(
    spec: PodDisruptionBudgetSpec, ready: int, broken: int, numbers: tuple[int, int, int, int]
) -> None:
    found = allowance(spec, pods(ready, broken), scale=5, granted={}, now=NOW)
    assert (found.expected, found.healthy, found.desired, found.allowed) == numbers


def test_a_pod_on_its_way_out_serves_nobody() -> None:
    mixed = [a_pod("a"), a_pod("b", terminating=True)]
    found = allowance(PodDisruptionBudgetSpec(min_available=1), mixed, scale=2, granted={}, now=NOW)
    assert (found.healthy, found.allowed) == (1, 0)


def test_a_granted_eviction_counts_until_it_is_seen_or_two_minutes_are_over() -> None:
    granted = {
        "p0": rfc3339(NOW - timedelta(seconds=90)),
        "p1": rfc3339(NOW - timedelta(seconds=121)),
        "gone": rfc3339(NOW),
        "p2": "rubbish",
    }
    spec = PodDisruptionBudgetSpec(min_available=1)
    found = allowance(spec, pods(3), scale=3, granted=granted, now=NOW)
    assert found.disrupted == {"p0": granted["p0"]}
    assert (found.healthy, found.allowed, found.wait) == (2, 1, 30.0)


def test_a_pod_that_took_the_name_of_an_evicted_one_is_another() -> None:
    granted = {"p0": rfc3339(NOW - timedelta(seconds=30))}
    spec = PodDisruptionBudgetSpec(min_available=1)
    successor = [a_pod("p0", age=10), a_pod("p1")]
    found = allowance(spec, successor, scale=2, granted=granted, now=NOW)
    assert (found.disrupted, found.healthy, found.allowed) == ({}, 2, 1)


# In a running cluster ---------------------------------------------------------------------------


def status(rig: Rig, name: str = "web") -> dict[str, object]:
    found = at(rig.get("poddisruptionbudgets", name, "policy"), "status")
    assert isinstance(found, dict)
    return found


def test_the_status_of_a_budget_follows_its_pods() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.create(budget(maxUnavailable=1), workload("Deployment", replicas=3))
        await rig.until(lambda: status(rig)["disruptionsAllowed"] == 1)
        shown = status(rig)
        assert (shown["expectedPods"], shown["currentHealthy"], shown["desiredHealthy"]) == (
            3,
            3,
            2,
        )
        assert shown["observedGeneration"] == 1
        await rig.patch(
            "/apis/apps/v1/namespaces/default/deployments/web", {"spec": {"replicas": 5}}
        )
        await rig.until(lambda: status(rig)["expectedPods"] == 5)
        await rig.until(lambda: status(rig)["disruptionsAllowed"] == 1)
        assert status(rig)["currentHealthy"] == 5

    on_rig(scenario)


def test_a_new_generation_of_a_budget_is_observed_even_if_the_numbers_stay() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(budget(minAvailable=1))
        await rig.until(lambda: status(rig).get("observedGeneration") == 1)
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web"
        await rig.patch(path, {"spec": {"minAvailable": 1, "unhealthyPodEvictionPolicy": "x"}})
        await rig.until(lambda: status(rig)["observedGeneration"] == 2)

    on_rig(scenario)


def test_draining_a_node_under_a_budget_of_one_evicts_one_pod_at_a_time() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.create(workload("Deployment", replicas=4), budget(maxUnavailable=1))
        await rig.until(lambda: len(rig.running()) == 4 and status(rig)["disruptionsAllowed"] == 1)
        await rig.boot("b")
        await rig.until(lambda: rig.ready("b"))
        await rig.cordon("a")
        leaving = rig.names("pods")
        granted: list[float] = []
        for name in leaving:
            while (code := await rig.evict(name)) != 201:
                assert code == 429
                await rig.pass_time(0.1)
                assert rig.now < 120
            granted.append(rig.now)
            ready = [n for n in rig.running() if not gone(rig, n)]
            assert len(ready) == 3
        await rig.until(lambda: set(rig.placed().values()) == {"b"} and len(rig.running()) == 4)
        # Each had to wait until the successor of the one before it ran.
        gaps = [later - earlier for earlier, later in pairwise(granted)]
        assert min(gaps) >= 1
        await rig.until(lambda: not status(rig).get("disruptedPods"), within=1)

    on_rig(scenario)


def gone(rig: Rig, name: str) -> bool:
    found = rig.find("pods", name)
    return found is None or bool(at(found, "metadata", "deletionTimestamp"))


def test_an_eviction_that_never_happened_is_forgotten_after_two_minutes() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(bare_node("n"), *(pod(f"p{i}", labels={"app": "web"}) for i in range(2)))
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
        for index in range(2):
            path = f"/api/v1/namespaces/default/pods/p{index}/status"
            await rig.patch(path, {"status": ready})
        await rig.create(budget(minAvailable=1))
        await rig.until(lambda: status(rig)["disruptionsAllowed"] == 1)
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web/status"
        spent = {"disruptionsAllowed": 0, "disruptedPods": {"p0": rfc3339(rig.clock.now())}}
        await rig.patch(path, {"status": spent})
        await rig.pass_time(60)
        assert (status(rig)["disruptionsAllowed"], status(rig)["currentHealthy"]) == (0, 1)
        waited = await rig.until(lambda: status(rig)["disruptionsAllowed"] == 1, within=70)
        assert waited == pytest.approx(60, abs=2)
        assert not status(rig).get("disruptedPods")

    on_rig(scenario)
