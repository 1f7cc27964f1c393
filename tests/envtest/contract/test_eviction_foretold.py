"""What a drain concludes from mirrored objects, against what the server then answers to it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from mcm.api.core import POD_DISRUPTION_BUDGETS, PODS, Pod
from mcm.drain.budgets import Allowances, BudgetView, Disruptions, ObstacleKind, view_for
from mcm.drain.execution import Action, Answer, AnswerKind, PodRequests, Verb
from tests.envtest.bench import Bench
from tests.envtest.contract.objects import pod

LABELS = {"app": "web"}
HELD, GOES = AnswerKind.HELD_BY_BUDGET, AnswerKind.ACCEPTED


@dataclass(frozen=True)
class Case:
    """One pod, its budgets by spec, and the status that each budget has."""

    answer: AnswerKind
    phase: str = "Running"
    ready: bool = True
    going: bool = False
    specs: tuple[dict[str, Any], ...] = ({"minAvailable": 1},)
    allowed: int = 0
    healthy: int = 1
    desired: int = 1
    processed: bool = True


ALWAYS = {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
IF_HEALTHY = {"minAvailable": 1, "unhealthyPodEvictionPolicy": "IfHealthyBudget"}
CASES = {
    "no budget": Case(GOES, specs=()),
    "allowed": Case(GOES, allowed=1, healthy=2),
    "spent": Case(HELD, healthy=2),
    "max unavailable 0": Case(HELD, specs=({"maxUnavailable": 0},)),
    "max unavailable 0 with a surge": Case(GOES, specs=({"maxUnavailable": 0},), allowed=1),
    "min available 100%": Case(HELD, specs=({"minAvailable": "100%"},)),
    "not processed": Case(HELD, allowed=1, processed=False),
    "empty selector": Case(HELD, specs=({"minAvailable": 1, "selector": {}},)),
    "no selector": Case(GOES, specs=({"minAvailable": 1, "selector": None},)),
    "pending": Case(GOES, phase="Pending", ready=False, healthy=0),
    "succeeded": Case(GOES, phase="Succeeded", ready=False, healthy=0),
    "failed": Case(GOES, phase="Failed", ready=False, healthy=0),
    "going": Case(GOES, going=True, healthy=0),
    "broken, enough others": Case(GOES, ready=False),
    "broken, too few others": Case(HELD, ready=False, healthy=0),
    "broken, none wanted": Case(HELD, ready=False, healthy=0, desired=0),
    "broken, if healthy": Case(HELD, ready=False, healthy=0, specs=(IF_HEALTHY,)),
    "broken, always": Case(GOES, ready=False, healthy=0, specs=(ALWAYS,)),
    "broken, not processed": Case(GOES, ready=False, processed=False),
    "well, always": Case(HELD, healthy=0, specs=(ALWAYS,)),
    "two": Case(AnswerKind.SEVERAL_BUDGETS, specs=(ALWAYS, IF_HEALTHY), allowed=1),
    "two, broken": Case(AnswerKind.SEVERAL_BUDGETS, specs=(ALWAYS, ALWAYS), ready=False, healthy=0),
    "two, pending": Case(GOES, specs=(ALWAYS, ALWAYS), phase="Pending", ready=False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_the_server_answers_what_a_drain_foretells(api: Bench, case: Case) -> None:
    await _make(api, case)
    subject, view = await _mirrored(api)
    allowances = Allowances(_disruptions(), now=0.0)
    foretold = allowances.take(subject, view)
    answer = await _evicted(api, subject)
    assert answer.kind is case.answer
    if case.processed or not view.needs_allowance:
        assert foretold is (case.answer is GOES)
    assert view.needs_allowance is (
        case.answer is not GOES or (bool(case.specs) and case.allowed > 0)
    )
    several = view.obstacle is not None and view.obstacle.kind is ObstacleKind.SEVERAL_BUDGETS
    assert several is (case.answer is AnswerKind.SEVERAL_BUDGETS)


async def test_another_pod_of_the_name_is_told_from_other_conflicts(api: Bench) -> None:
    await _make(api, Case(GOES, specs=()))
    subject, _ = await _mirrored(api)
    await api.send("DELETE", api.pods("a"), {"gracePeriodSeconds": 0})
    await _make(api, Case(GOES, specs=()))
    for verb in Verb:
        assert (await _evicted(api, subject, verb)).kind is AnswerKind.REPLACED
    assert "deletionTimestamp" not in (await api.get(api.pods("a")))["metadata"]


async def test_a_pod_that_is_gone_is_told_from_a_subresource_that_is_not_served(
    api: Bench,
) -> None:
    await _make(api, Case(GOES, specs=()))
    subject, _ = await _mirrored(api)
    missing = await api.send("POST", api.pods("a") + "/banishment", {})
    assert (missing.status, missing.reason) == (404, "NotFound")
    assert missing.body["details"] == {}
    assert missing.body["message"] == "the server could not find the requested resource"
    await api.send("DELETE", api.pods("a"), {"gracePeriodSeconds": 0})
    gone = await api.send("POST", api.pods("a") + "/eviction", _eviction())
    assert (gone.status, gone.reason) == (404, "NotFound")
    assert gone.body["details"] == {"name": "a", "kind": "pods"}
    for verb in Verb:
        assert (await _evicted(api, subject, verb)).kind is AnswerKind.GONE


async def test_discovery_lists_evictions(api: Bench) -> None:
    requests = PodRequests(api.client, _disruptions(), monotonic=lambda: 0.0, random=Random(1))
    assert not await requests.api.is_missing()
    (found,) = (r for r in (await api.get("/api/v1"))["resources"] if r["name"] == "pods/eviction")
    assert (found["group"], found["version"], found["kind"]) == ("policy", "v1", "Eviction")


async def test_a_namespace_that_ends_takes_no_evictions(api: Bench) -> None:
    await _make(api, Case(GOES, specs=()))
    subject, _ = await _mirrored(api)
    await api.send("DELETE", f"/api/v1/namespaces/{api.namespace}")
    raw = await api.send("POST", api.pods("a") + "/eviction", _eviction())
    assert (raw.status, raw.reason) == (403, "Forbidden")
    assert raw.causes == [("NamespaceTerminating", "metadata.namespace")]
    assert (await _evicted(api, subject)).kind is AnswerKind.NAMESPACE_ENDS


async def test_a_namespace_that_is_gone_has_no_pods(api: Bench) -> None:
    path = "/api/v1/namespaces/nirvana/pods/a/eviction"
    answer = await api.send("POST", path, _eviction())
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.body["details"] == {"name": "nirvana", "kind": "namespaces"}


async def test_a_method_that_evictions_do_not_have_is_not_allowed(api: Bench) -> None:
    answer = await api.send("PUT", api.pods("a") + "/eviction", _eviction())
    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")
    assert answer.body["details"] == {}


async def test_one_of_three_goes_and_the_budget_names_it(api: Bench) -> None:
    """The server's bookkeeping is what tells a drain that its own eviction is counted."""
    for name in ("a", "b", "c"):
        await _make(api, Case(GOES, specs=()), name)
    await _make_budget(api, "web", Case(GOES, allowed=1, healthy=3, desired=2), {"minAvailable": 2})
    subjects = [(await _mirrored(api, name))[0] for name in ("a", "b", "c")]
    budgets = (await api.client.list_page(POD_DISRUPTION_BUDGETS, namespace=api.namespace)).items
    disruptions = Disruptions(
        pods={s.metadata.key: s for s in subjects}.get,
        budgets={b.metadata.key: b for b in budgets}.get,
        random=Random(1),
    )
    requests = PodRequests(api.client, disruptions, monotonic=lambda: 0.0, random=Random(1))
    allowances = Allowances(disruptions, now=0.0)
    asked = [s for s in subjects if allowances.take(s, view_for(s, budgets))]
    answers = await requests.carry_out(
        "node", [Action(Verb.EVICT, s) for s in asked], budgets=lambda p: view_for(p, budgets)
    )
    assert [a.answer.kind for a in answers] == [AnswerKind.ACCEPTED]
    (before,) = budgets
    assert disruptions.under_way(before, 0.0) == 1
    (after,) = (await api.client.list_page(POD_DISRUPTION_BUDGETS, namespace=api.namespace)).items
    assert after.status.disruptions_allowed == 0
    assert list(after.status.disrupted_pods) == ["a"]
    assert disruptions.under_way(after, 0.0) == 0


# ---- objects -------------------------------------------------------------------------------------


async def _make(api: Bench, case: Case, name: str = "a") -> None:
    await api.create(api.pods(), pod(name, LABELS, nodeName="n"))
    ready = {"type": "Ready", "status": "True" if case.ready else "False"}
    status = {"phase": case.phase, "conditions": [ready]}
    await api.patch(api.pods(name) + "/status", {"status": status})
    if case.going:
        await api.send("DELETE", api.pods(name))
    for number, spec in enumerate(case.specs):
        await _make_budget(api, f"b{number}", case, spec)


async def _make_budget(api: Bench, name: str, case: Case, spec: dict[str, Any]) -> None:
    """No controller counts here: the status is what the case says."""
    path = api.path("poddisruptionbudgets", group="policy/v1")
    created = await api.create(
        path,
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": LABELS}, **spec},
        },
    )
    generation = created["metadata"]["generation"]
    status = {
        "observedGeneration": generation if case.processed else generation - 1,
        "disruptionsAllowed": case.allowed,
        "currentHealthy": case.healthy,
        "desiredHealthy": case.desired,
        "expectedPods": 3,
    }
    await api.patch(f"{path}/{name}/status", {"status": status})


async def _mirrored(api: Bench, name: str = "a") -> tuple[Pod, BudgetView]:
    subject = await api.client.get(PODS, name, namespace=api.namespace)
    page = await api.client.list_page(POD_DISRUPTION_BUDGETS, namespace=api.namespace)
    return subject, view_for(subject, page.items)


async def _evicted(api: Bench, subject: Pod, verb: Verb = Verb.EVICT) -> Answer:
    requests = PodRequests(api.client, _disruptions(), monotonic=lambda: 0.0, random=Random(1))
    return (await requests.ask(Action(verb, subject))).answer


def _disruptions() -> Disruptions:
    return Disruptions(pods=lambda _: None, budgets=lambda _: None, random=Random(1))


def _eviction(name: str = "a") -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
