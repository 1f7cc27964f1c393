from __future__ import annotations

from typing import Any

import pytest

from tests.unit.sandbox_core.workbench import BUDGETS, PODS, Answer, Document, Workbench, pod

LABELS = {"app": "web"}


def running_pod(api: Workbench, name: str, *, ready: bool = True) -> Document:
    api.create(PODS, pod(name, node="n", labels=LABELS))
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": "Running", "conditions": conditions}
    return api.patch(f"{PODS}/{name}/status", {"status": status})


def budget(api: Workbench, name: str = "pdb", *, allowed: int = 1, **changes: Any) -> Document:
    """A budget whose controller has seen it."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": LABELS}} | changes.pop("spec", {})
    api.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": 2,
        "desiredHealthy": 2,
        "expectedPods": 3,
        **changes,
    }
    return api.patch(f"{BUDGETS}/{name}/status", {"status": status})


def evict(api: Workbench, name: str, body: Document | None = None, **query: str) -> Answer:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        **(body or {}),
    }
    return api.send("POST", f"{PODS}/{name}/eviction", eviction, **query)


def is_terminating(api: Workbench, name: str) -> bool:
    return "deletionTimestamp" in api.get(f"{PODS}/{name}")["metadata"]


def test_without_a_budget_an_eviction_is_a_deletion(api: Workbench) -> None:
    running_pod(api, "p")
    answer = evict(api, "p", {"deleteOptions": {"gracePeriodSeconds": 5}})
    assert answer.status == 201
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
    assert api.get(f"{PODS}/p")["metadata"]["deletionGracePeriodSeconds"] == 5


def test_an_eviction_spends_the_budget(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api, allowed=2)
    assert evict(api, "p").status == 201
    status = api.get(f"{BUDGETS}/pdb")["status"]
    assert status["disruptionsAllowed"] == 1
    assert status["disruptedPods"] == {"p": "2026-01-01T00:00:00Z"}
    assert is_terminating(api, "p")


def test_a_spent_budget_refuses_and_says_why(api: Workbench) -> None:
    running_pod(api, "p")
    running_pod(api, "q")
    budget(api, allowed=1)
    assert evict(api, "p").status == 201
    answer = evict(api, "q")
    assert (answer.status, answer.body["reason"]) == (429, "TooManyRequests")
    assert answer.body["message"] == (
        "Cannot evict pod as it would violate the pod's disruption budget."
    )
    (cause,) = answer.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget pdb needs 2 healthy pods and has 2 currently"
    assert "retry-after" not in answer.headers
    assert not is_terminating(api, "q")
    (condition,) = api.get(f"{BUDGETS}/pdb")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")


def test_a_budget_not_yet_seen_by_its_controller_refuses_for_a_while(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api)
    api.patch(f"{BUDGETS}/pdb", {"spec": {"minAvailable": 2}})
    answer = evict(api, "p")
    assert answer.status == 429
    assert answer.headers["retry-after"] == "10"
    assert answer.body["details"]["retryAfterSeconds"] == 10
    (cause,) = answer.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"


def test_two_budgets_are_too_many(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api, "one")
    budget(api, "two")
    answer = evict(api, "p")
    assert answer.status == 500
    assert "reason" not in answer.body
    assert "more than one PodDisruptionBudget" in answer.body["message"]


def test_a_budget_counts_only_for_the_pods_it_selects(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api, allowed=0, spec={"selector": {"matchLabels": {"app": "db"}}})
    budget(api, "none", allowed=0, spec={"selector": None})
    assert evict(api, "p").status == 201


def test_a_selector_that_is_none_selects_nothing(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api, allowed=0, spec={"selector": {"matchLabels": ["app"]}})
    assert evict(api, "p").status == 201


def test_an_empty_selector_selects_all_pods(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api, allowed=0, spec={"selector": {}})
    assert evict(api, "p").status == 429


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_pods_that_serve_nobody_need_no_budget(api: Workbench, phase: str) -> None:
    running_pod(api, "p")
    api.patch(f"{PODS}/p/status", {"status": {"phase": phase}})
    budget(api, allowed=0)
    assert evict(api, "p").status == 201


def test_a_pod_on_its_way_out_needs_no_budget(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api, allowed=0)
    api.delete(f"{PODS}/p")
    assert evict(api, "p").status == 201


@pytest.mark.parametrize(
    ("policy", "healthy", "status"),
    [
        (None, 2, 201),  # enough others are healthy
        (None, 1, 429),
        ("IfHealthyBudget", 1, 429),
        ("AlwaysAllow", 0, 201),
    ],
)
def test_a_broken_pod_may_go_when_the_policy_says_so(
    api: Workbench, policy: str | None, healthy: int, status: int
) -> None:
    running_pod(api, "p", ready=False)
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    budget(api, allowed=0, currentHealthy=healthy, spec=spec)
    assert evict(api, "p").status == status
    assert api.get(f"{BUDGETS}/pdb")["status"]["disruptionsAllowed"] == 0


def test_a_dry_run_spends_nothing(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api, allowed=1)
    before = api.server.store.revision
    assert evict(api, "p", dryRun="All").status == 201
    assert evict(api, "p", {"deleteOptions": {"dryRun": ["All"]}}).status == 201
    assert api.server.store.revision == before


def test_a_failed_precondition_spends_the_budget_all_the_same(api: Workbench) -> None:
    running_pod(api, "p")
    budget(api, allowed=1)
    answer = evict(api, "p", {"deleteOptions": {"preconditions": {"uid": "other"}}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert not is_terminating(api, "p")
    assert api.get(f"{BUDGETS}/pdb")["status"]["disruptionsAllowed"] == 0


def test_what_is_not_there_cannot_be_evicted(api: Workbench) -> None:
    answer = evict(api, "p")
    assert (answer.status, answer.body["details"]["kind"]) == (404, "pods")


@pytest.mark.parametrize(
    "change", [{"kind": "Pod"}, {"apiVersion": "policy/v9"}, {"metadata": {"name": "q"}}]
)
def test_an_eviction_must_be_one(api: Workbench, change: Document) -> None:
    running_pod(api, "p")
    assert evict(api, "p", change).status == 400


def test_an_eviction_can_only_be_posted(api: Workbench) -> None:
    running_pod(api, "p")
    assert api.send("GET", f"{PODS}/p/eviction").status == 405


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"disruptionsAllowed": -1}, "negative"),
        ({"disruptedPods": {f"p{i}": "2026-01-01T00:00:00Z" for i in range(2001)}}, "too big"),
    ],
)
def test_a_nonsensical_budget_forbids(api: Workbench, status: Document, words: str) -> None:
    running_pod(api, "p")
    budget(api, **status)
    answer = evict(api, "p")
    assert answer.status == 403
    assert words in answer.body["message"]
