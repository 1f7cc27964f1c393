"""POST of ``pods/NAME/eviction``: a deletion that asks the disruption budgets first.

The check and the bookkeeping in the budget's status are one step, so two evictions can never use
the same allowance; but, as upstream, it is spent even if the deletion then fails on a precondition.
Who recomputes the status afterwards is the disruption controller's part, not the server's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import msgspec

from mcm.api.core import PodDisruptionBudgetSpec
from mcm.api.meta import JSONObject
from mcm.api.selectors import matches
from mcm.client.transport import Response
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    StatusError,
    bad_request,
    forbidden,
    method_not_allowed,
    too_many_requests,
    unreasoned,
)
from mcm.sandbox.apiserver.kinds.builtin import POD_DISRUPTION_BUDGETS
from mcm.sandbox.apiserver.reading.rendering import success
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import Call, ServerState, decode_body, write_options
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.create_update import check_namespace, find
from mcm.sandbox.apiserver.writing.deletion import DeleteOptions, delete_object, delete_options_of
from mcm.sandbox.apiserver.writing.metadata import metadata_of, text_of

_PROCESSING_RETRY = 10
_MOST_DISRUPTED = 2000


def evict(state: ServerState, call: Call) -> Response:
    """Evict one pod. Raises StatusError: 404, 403 in a namespace that ends, 409 for a failed
    precondition, 429 with the cause ``DisruptionBudget`` if a budget refuses, 500 if several
    budgets cover the pod."""
    if call.verb != "create":
        raise method_not_allowed()
    options = _options_of(call)
    # It is a creation to admission: of nothing in a namespace that ends, whatever it would free.
    check_namespace(state, call.info, call.target.namespace, call.target.name)
    pod = find(state, call)
    if not _needs_no_budget(pod):
        budget = _budget_of(state, pod)
        if budget is not None:
            _spend(state, budget, pod, dry_run=options.dry_run)
    delete_object(state, call.info, pod, options)
    return success(status=201)


def _options_of(call: Call) -> DeleteOptions:
    eviction = decode_body(call)
    kind, version = eviction.get("kind", "Eviction"), eviction.get("apiVersion", "policy/v1")
    if (kind, version) != ("Eviction", "policy/v1"):
        raise bad_request(f"expected a policy/v1 Eviction, got a {version} {kind}")
    name = text_of(metadata_of(eviction), "name")
    if name not in ("", call.target.name):
        raise bad_request("name in URL does not match name in Eviction object")
    options = delete_options_of(cast(JSONObject, eviction.get("deleteOptions") or {}))
    return replace(options, dry_run=options.dry_run or write_options(call).dry_run)


def _needs_no_budget(pod: Stored) -> bool:
    """Pods that serve nobody: done, not started, or on their way out."""
    status = cast(JSONObject, pod.body.get("status") or {})
    return pod.terminating or status.get("phase") in ("Succeeded", "Failed", "Pending")


def _budget_of(state: ServerState, pod: Stored) -> Stored | None:
    budgets = state.store.collection(POD_DISRUPTION_BUDGETS).ordered(pod.namespace)
    covering = [budget for budget in budgets if _covers(budget, pod)]
    if len(covering) > 1:
        raise unreasoned(
            "This pod has more than one PodDisruptionBudget, "
            "which the eviction subresource does not support."
        )
    return covering[0] if covering else None


def _covers(budget: Stored, pod: Stored) -> bool:
    try:
        spec = msgspec.convert(budget.body.get("spec") or {}, PodDisruptionBudgetSpec)
    except msgspec.ValidationError:
        return False
    return matches(spec.selector, pod.labels)


def _spend(state: ServerState, budget: Stored, pod: Stored, *, dry_run: bool) -> None:
    """Take one disruption from the budget, unless the pod is too broken to count."""
    info = cast(ResourceInfo, state.registry.find("policy", "v1", "poddisruptionbudgets"))
    status = cast(JSONObject, budget.body.get("status") or {})
    if not _is_ready(pod) and _frees_broken_pods(budget, status):
        return
    _check(info, budget, status)
    if dry_run:
        return
    allowed = _number(status, "disruptionsAllowed") - 1
    disrupted = cast(JSONObject, status.get("disruptedPods") or {})
    status = {
        **status,
        "disruptionsAllowed": allowed,
        "disruptedPods": {**disrupted, pod.name: state.stamp()},
    }
    if allowed == 0:
        status["conditions"] = _exhausted(state, budget, status)
    body = {**budget.body, "status": status, "metadata": dict(budget.metadata)}
    state.store.replace(info.storage, budget, body)


def _is_ready(pod: Stored) -> bool:
    status = cast(JSONObject, pod.body.get("status") or {})
    conditions = cast("list[JSONObject]", status.get("conditions") or [])
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _frees_broken_pods(budget: Stored, status: JSONObject) -> bool:
    spec = cast(JSONObject, budget.body.get("spec") or {})
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = _number(status, "desiredHealthy")
    return 0 < desired <= _number(status, "currentHealthy")


def _check(info: ResourceInfo, budget: Stored, status: JSONObject) -> None:
    observed = _number(status, "observedGeneration")
    if observed < cast(int, budget.metadata.get("generation") or 0):
        raise _refusal(
            f"The disruption budget {budget.name} is still being processed by the server.",
            retry_after=_PROCESSING_RETRY,
        )
    allowed = _number(status, "disruptionsAllowed")
    if allowed < 0:
        raise forbidden(info, budget.name, "pdb disruptions allowed is negative")
    if len(cast(JSONObject, status.get("disruptedPods") or {})) > _MOST_DISRUPTED:
        raise forbidden(info, budget.name, "DisruptedPods map too big: too many evictions")
    if allowed == 0:
        raise _refusal(
            f"The disruption budget {budget.name} needs {_number(status, 'desiredHealthy')} "
            f"healthy pods and has {_number(status, 'currentHealthy')} currently"
        )


def _refusal(why: str, *, retry_after: int | None = None) -> StatusError:
    return too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry_after=retry_after,
        causes=(StatusCause("DisruptionBudget", why),),
    )


def _exhausted(state: ServerState, budget: Stored, status: JSONObject) -> list[JSONObject]:
    condition: JSONObject = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": budget.metadata.get("generation", 0),
        "lastTransitionTime": state.stamp(),
    }
    before = cast("list[JSONObject]", status.get("conditions") or [])
    others = [c for c in before if c.get("type") != "DisruptionAllowed"]
    kept = [
        c for c in before if c.get("type") == "DisruptionAllowed" and c.get("status") == "False"
    ]
    return [*others, *(kept or [condition])]


def _number(status: JSONObject, name: str) -> int:
    found = status.get(name)
    return found if isinstance(found, int) else 0
