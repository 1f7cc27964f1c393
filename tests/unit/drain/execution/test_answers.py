from __future__ import annotations

import pytest

from mcm.client.errors import (
    ConnectionRefused,
    KubeError,
    ProtocolError,
    RequestTimeout,
    TransportError,
    error_from_status,
)
from mcm.drain.execution import Answer, AnswerKind, Verb, answer_to

NOT_SERVED = b"""{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{},
    "message":"the server could not find the requested resource"}"""
NO_POD = b"""{"kind":"Status","status":"Failure","message":"pods \\"p\\" not found","code":404,
    "reason":"NotFound","details":{"name":"p","kind":"pods"}}"""
NO_NAMESPACE = b"""{"kind":"Status","status":"Failure","message":"namespaces \\"n\\" not found",
    "reason":"NotFound","details":{"name":"n","kind":"namespaces"},"code":404}"""
OTHER_UID = b"""{"kind":"Status","status":"Failure","reason":"Conflict","code":409,
    "details":{"name":"p","kind":"Pod"},"message":"Operation cannot be fulfilled on Pod \\"p\\": the
    UID in the precondition (x) does not match the UID in record (y)."}"""
OTHER_UID_OLDER = b"""{"kind":"Status","status":"Failure","reason":"Conflict","code":409,
    "message":"Precondition failed: UID in precondition: x, UID in object meta: y"}"""
OTHER_CONFLICT = b"""{"kind":"Status","status":"Failure","reason":"Conflict","code":409,
    "message":"the object has been modified; please apply your changes to the latest version"}"""
BY_BUDGET = b"""{"kind":"Status","status":"Failure","reason":"TooManyRequests","code":429,
    "message":"Cannot evict pod as it would violate the pod's disruption budget.",
    "details":{"causes":[{"reason":"DisruptionBudget",
    "message":"The disruption budget web needs 2 healthy pods and has 2 currently"}]}}"""
BY_FAIRNESS = b"Too many requests, please try again later.\n"
NAMESPACE_ENDS = b"""{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,
    "message":"pods \\"p\\" is forbidden: unable to create new content in namespace n",
    "details":{"name":"p","kind":"pods","causes":[{"reason":"NamespaceTerminating",
    "message":"namespace n is being terminated","field":"metadata.namespace"}]}}"""
FORBIDDEN = b"""{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,
    "message":"pods \\"p\\" is forbidden: User \\"mcm\\" cannot create resource"}"""
SEVERAL = b"""{"kind":"Status","status":"Failure","code":500,"message":"This pod has more than one
    PodDisruptionBudget, which the eviction subresource does not support."}"""
BROKEN = b"""{"kind":"Status","status":"Failure","reason":"InternalError","code":500,
    "message":"Internal error occurred: etcdserver: no leader"}"""
CONFLICTS = b"""{"kind":"Status","status":"Failure","reason":"Timeout","code":504,
    "message":"Timeout: couldn't update PodDisruptionBudget \\"web\\" due to conflicts",
    "details":{"retryAfterSeconds":10}}"""
NO_METHOD = b"""{"kind":"Status","status":"Failure","reason":"MethodNotAllowed","code":405,
    "message":"the server does not allow this method on the requested resource"}"""


@pytest.mark.parametrize(
    ("code", "body", "evicted", "deleted"),
    [
        (404, NO_POD, AnswerKind.GONE, AnswerKind.GONE),
        (404, NO_NAMESPACE, AnswerKind.GONE, AnswerKind.GONE),
        (404, NOT_SERVED, AnswerKind.NO_EVICTION_API, AnswerKind.GONE),
        (404, b"404 page not found", AnswerKind.NO_EVICTION_API, AnswerKind.GONE),
        (405, NO_METHOD, AnswerKind.NO_EVICTION_API, AnswerKind.FAILED),
        (409, OTHER_UID, AnswerKind.REPLACED, AnswerKind.REPLACED),
        (409, OTHER_UID_OLDER, AnswerKind.REPLACED, AnswerKind.REPLACED),
        (409, OTHER_CONFLICT, AnswerKind.FAILED, AnswerKind.FAILED),
        (429, BY_BUDGET, AnswerKind.HELD_BY_BUDGET, AnswerKind.HELD_BY_BUDGET),
        (429, BY_FAIRNESS, AnswerKind.SERVER_BUSY, AnswerKind.SERVER_BUSY),
        (403, NAMESPACE_ENDS, AnswerKind.NAMESPACE_ENDS, AnswerKind.NAMESPACE_ENDS),
        (403, FORBIDDEN, AnswerKind.FORBIDDEN, AnswerKind.FORBIDDEN),
        (500, SEVERAL, AnswerKind.SEVERAL_BUDGETS, AnswerKind.SEVERAL_BUDGETS),
        (500, BROKEN, AnswerKind.FAILED, AnswerKind.FAILED),
        (503, b"upstream connect error", AnswerKind.FAILED, AnswerKind.FAILED),
        (504, CONFLICTS, AnswerKind.LOST, AnswerKind.LOST),
        (400, b"", AnswerKind.FAILED, AnswerKind.FAILED),
        (401, b"", AnswerKind.FAILED, AnswerKind.FAILED),
        (422, b"", AnswerKind.FAILED, AnswerKind.FAILED),
    ],
)
def test_an_answer_means_the_same_whoever_reads_it(
    code: int, body: bytes, evicted: AnswerKind, deleted: AnswerKind
) -> None:
    body = b" ".join(body.split())
    error = error_from_status(code, body)
    assert answer_to(Verb.EVICT, error).kind is evicted
    assert answer_to(Verb.DELETE, error).kind is deleted
    assert answer_to(Verb.EVICT, error).code == str(code)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RequestTimeout("no answer"), AnswerKind.LOST),
        (TransportError("reset"), AnswerKind.LOST),
        (ProtocolError("torn"), AnswerKind.LOST),
        (ConnectionRefused("nobody listens"), AnswerKind.FAILED),
    ],
)
def test_without_an_answer_it_counts_whether_the_request_was_sent(
    error: KubeError, kind: AnswerKind
) -> None:
    answer = answer_to(Verb.EVICT, error)
    assert (answer.kind, answer.code) == (kind, "<error>")
    assert str(error) in answer.text


@pytest.mark.parametrize("kind", AnswerKind)
def test_what_is_over_is_not_asked_again_and_what_lasts_does_not_pass_by_waiting(
    kind: AnswerKind,
) -> None:
    answer = Answer(kind, "0")
    assert answer.is_over is (kind.value in ("accepted", "gone", "replaced"))
    assert answer.lasting is (kind.value in ("forbidden", "several budgets"))


def test_success_is_acceptance() -> None:
    assert answer_to(Verb.EVICT, None).kind is AnswerKind.ACCEPTED
    assert answer_to(Verb.DELETE, None).code == "200"


def test_the_text_is_the_budgets_own_reason_and_the_wait_the_servers() -> None:
    held = answer_to(Verb.EVICT, error_from_status(429, b" ".join(BY_BUDGET.split())))
    assert held.text == "The disruption budget web needs 2 healthy pods and has 2 currently"
    later = answer_to(Verb.EVICT, error_from_status(429, BY_FAIRNESS, retry_after=7.0))
    assert later.retry_after == 7.0
    lost = answer_to(Verb.EVICT, error_from_status(504, CONFLICTS))
    assert lost.retry_after == 10.0
