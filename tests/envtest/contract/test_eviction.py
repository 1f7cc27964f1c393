"""Nobody computes budgets here: the tests write their status as the controller would."""

from __future__ import annotations

from typing import Any

from tests.envtest.bench import Bench, Document
from tests.envtest.contract.objects import budget, pod

LABELS = {"app": "web"}


async def test_without_a_budget_an_eviction_is_a_deletion(api: Bench) -> None:
    await _running(api, "p")
    answer = await api.send("POST", api.pods("p") + "/eviction", _eviction("p"))
    assert answer.status == 201
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
    assert "deletionTimestamp" in (await api.get(api.pods("p")))["metadata"]


async def test_a_budget_allows_as_many_as_its_status_says(api: Bench) -> None:
    for name in ("a", "b"):
        await _running(api, name)
    await _budget(api, "web", disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    assert (await api.send("POST", api.pods("a") + "/eviction", _eviction("a"))).status == 201
    after = await api.get(_budgets(api, "web"))
    assert after["status"]["disruptionsAllowed"] == 0
    assert list(after["status"]["disruptedPods"]) == ["a"]
    answer = await api.send("POST", api.pods("b") + "/eviction", _eviction("b"))
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    (cause,) = answer.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == (
        "The disruption budget web needs 1 healthy pods and has 2 currently"
    )
    assert "deletionTimestamp" not in (await api.get(api.pods("b")))["metadata"]


async def test_a_budget_not_yet_counted_asks_to_come_back(api: Bench) -> None:
    await _running(api, "a")
    await api.create(_budgets(api), budget("web", LABELS))
    answer = await api.send("POST", api.pods("a") + "/eviction", _eviction("a"))
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.body["details"]["retryAfterSeconds"] == 10
    assert answer.headers["retry-after"] == "10"
    (cause,) = answer.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert "is still being processed by the server" in cause["message"]


async def test_two_budgets_on_one_pod_are_a_server_error(api: Bench) -> None:
    await _running(api, "a")
    for name in ("one", "two"):
        await _budget(api, name, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    answer = await api.send("POST", api.pods("a") + "/eviction", _eviction("a"))
    assert (answer.status, answer.reason) == (500, "")
    assert "more than one PodDisruptionBudget" in answer.body["message"]


async def test_a_pod_that_is_not_ready_may_go_if_enough_others_are_healthy(api: Bench) -> None:
    await _running(api, "a", ready="False")
    await _budget(api, "web", disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    assert (await api.send("POST", api.pods("a") + "/eviction", _eviction("a"))).status == 201
    assert (await api.get(_budgets(api, "web")))["status"].get("disruptedPods") is None


async def test_pods_that_serve_nobody_need_no_budget(api: Bench) -> None:
    await api.create(api.pods(), pod("p", LABELS))  # Pending
    await _budget(api, "web", disruptionsAllowed=0, currentHealthy=0, desiredHealthy=1)
    assert (await api.send("POST", api.pods("p") + "/eviction", _eviction("p"))).status == 201
    assert await api.gone(api.pods("p"))


async def test_an_eviction_of_another_incarnation_is_a_conflict(api: Bench) -> None:
    await _running(api, "p")
    eviction = _eviction("p", preconditions={"uid": "00000000-0000-0000-0000-000000000000"})
    answer = await api.send("POST", api.pods("p") + "/eviction", eviction)
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_an_eviction_may_shorten_the_grace(api: Bench) -> None:
    await _running(api, "p")
    await api.send("POST", api.pods("p") + "/eviction", _eviction("p", gracePeriodSeconds=3))
    assert (await api.get(api.pods("p")))["metadata"]["deletionGracePeriodSeconds"] == 3


async def test_what_is_not_there_cannot_be_evicted(api: Bench) -> None:
    answer = await api.send("POST", api.pods("p") + "/eviction", _eviction("p"))
    assert (answer.status, answer.reason) == (404, "NotFound")


async def _running(api: Bench, name: str, *, ready: str = "True") -> None:
    await api.create(api.pods(), pod(name, LABELS, nodeName="n"))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    await api.patch(api.pods(name) + "/status", {"status": status})


async def _budget(api: Bench, name: str, **status: Any) -> None:
    created = await api.create(_budgets(api), budget(name, LABELS))
    observed = {"observedGeneration": created["metadata"]["generation"], "expectedPods": 2}
    await api.patch(_budgets(api, name) + "/status", {"status": {**observed, **status}})


def _budgets(api: Bench, name: str = "") -> str:
    return api.path("poddisruptionbudgets", name, group="policy/v1")


def _eviction(name: str, **options: Any) -> Document:
    eviction: Document = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
    }
    return {**eviction, "deleteOptions": options} if options else eviction
