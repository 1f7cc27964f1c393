from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from mcm.api.core import NODES, PODS
from mcm.client import answers
from mcm.client.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ProtocolError,
    ServerError,
    ServerTimeout,
    TooLargeResourceVersion,
    TooManyRequests,
    Unauthorized,
    error_from_status,
)
from mcm.client.transport import Response


def answer(body: object, status: int = 200) -> Response:
    return Response(status, {}, json.dumps(body).encode())


def status(code: int, reason: str = "", **details: object) -> bytes:
    return json.dumps(
        {"kind": "Status", "code": code, "reason": reason, "message": "m", "details": details}
    ).encode()


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        (400, status(400, "BadRequest"), BadRequest),
        (401, status(401, "Unauthorized"), Unauthorized),
        (403, status(403, "Forbidden"), Forbidden),
        (404, status(404, "NotFound"), NotFound),
        (405, status(405, "MethodNotAllowed"), MethodNotAllowed),
        (409, status(409, "Conflict"), Conflict),
        (409, status(409, "AlreadyExists"), AlreadyExists),
        (410, status(410, "Expired"), Gone),
        (410, status(410, "Gone"), Gone),
        (410, b"", Gone),
        (422, status(422, "Invalid"), Invalid),
        (422, status(422, "Invalid", causes=[{"field": "metadata.uid"}] * 2), Conflict),
        (422, status(422, "Invalid", causes=[{"field": "metadata.name"}]), Invalid),
        (429, status(429, "TooManyRequests"), TooManyRequests),
        (500, status(500, "InternalError"), ServerError),
        (500, status(500, "ServerTimeout"), ServerTimeout),
        (503, b"<html>", ServerError),
        (504, status(504, "Timeout"), ServerTimeout),
        (
            504,
            status(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}]),
            TooLargeResourceVersion,
        ),
        (302, b"", ApiError),
    ],
)
def test_code_and_reason_choose_the_error(code: int, body: bytes, expected: type[ApiError]) -> None:
    error = answers.failure(code, {}, body)
    assert type(error) is expected
    assert error.code == code


@pytest.mark.parametrize("code", [200, 201, 202])
def test_a_success_is_no_failure(code: int) -> None:
    assert answers.failure(code, {}, b"") is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "5"}, 5.0),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "²"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_seconds_or_nothing(
    headers: Mapping[str, str], seconds: float | None
) -> None:
    assert answers.retry_after(headers) == seconds


def test_retry_after_may_stand_in_the_details_and_the_header_wins() -> None:
    body = status(429, "TooManyRequests", retryAfterSeconds=9)
    assert error_from_status(429, body).retry_after == 9
    error = answers.failure(429, {"retry-after": "2"}, body)
    assert error is not None and error.retry_after == 2


def test_an_events_status_brings_its_own_code() -> None:
    assert isinstance(error_from_status(0, status(410, "Expired")), Gone)


def test_causes_name_what_refused() -> None:
    cause = {"reason": "DisruptionBudget", "message": "needs 2 healthy", "field": ""}
    error = error_from_status(429, status(429, "TooManyRequests", causes=[cause]))
    assert [c.reason for c in error.causes] == ["DisruptionBudget"]


def test_a_long_text_is_cut() -> None:
    assert len(str(error_from_status(500, b"x" * 10_000))) <= 512


def test_an_object_is_decoded() -> None:
    node = answers.object_of(NODES, answer({"metadata": {"name": "n1"}}))
    assert node.metadata.name == "n1"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"kind": "Status", "metadata": {}}', b'{"metadata": {"name": 1}}'],
)
def test_what_is_no_object_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        answers.object_of(NODES, Response(200, {}, body))


def test_a_page_has_items_versions_and_what_is_left() -> None:
    page = answers.page_of(
        NODES,
        answer(
            {
                "metadata": {"resourceVersion": "9", "continue": "c", "remainingItemCount": 3},
                "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
            }
        ),
    )
    assert [n.metadata.name for n in page.items] == ["a", "b"]
    assert (page.resource_version, page.continue_token, page.remaining) == ("9", "c", 3)


def test_an_empty_list_of_go_is_null() -> None:
    page = answers.page_of(NODES, answer({"metadata": {"resourceVersion": "9"}, "items": None}))
    assert page.items == () and page.remaining is None


def test_a_bad_item_costs_only_itself() -> None:
    page = answers.page_of(
        NODES,
        answer(
            {
                "metadata": {"resourceVersion": "9"},
                "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": 1}],
            }
        ),
    )
    assert [n.metadata.name for n in page.items] == ["a"]
    assert [b.metadata.name for b in page.bad] == ["b"]


@pytest.mark.parametrize("body", [{}, {"kind": "Status"}, {"items": []}, []])
def test_what_is_no_list_is_never_taken_for_an_empty_one(body: object) -> None:
    with pytest.raises(ProtocolError):
        answers.page_of(NODES, answer(body))


POD = {"name": "p", "namespace": "default"}
AT = "2024-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ({"kind": "Status", "status": "Success"}, False),
        ({"kind": "Pod", "metadata": POD}, False),
        ({"kind": "Pod", "metadata": {**POD, "deletionTimestamp": AT, "finalizers": ["f"]}}, True),
        (
            {
                "kind": "Pod",
                "metadata": {**POD, "deletionTimestamp": AT, "deletionGracePeriodSeconds": 30},
            },
            True,
        ),
        (
            {
                "kind": "Pod",
                "metadata": {**POD, "deletionTimestamp": AT, "deletionGracePeriodSeconds": 0},
            },
            False,
        ),
        (
            {
                "kind": "Pod",
                "metadata": {
                    **POD,
                    "deletionTimestamp": AT,
                    "deletionGracePeriodSeconds": 0,
                    "finalizers": ["f"],
                },
            },
            True,
        ),
    ],
)
def test_a_deleted_object_stays_while_it_waits_for_something(body: object, stays: bool) -> None:
    remainder = answers.remainder_of(PODS, answer(body))
    assert (remainder is not None) is stays


def test_an_unreadable_answer_to_a_deletion_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        answers.remainder_of(PODS, Response(200, {}, b"gone"))
