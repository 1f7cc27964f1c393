from __future__ import annotations

import pytest

from mcm.api.meta import ObjectMeta
from mcm.client.errors import (
    AlreadyExists,
    Conflict,
    ConnectionRefused,
    ConnectTimeout,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ProtocolError,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    TransportError,
)
from mcm.controllers.owning import Ending, ending_of
from mcm.controllers.owning.outcome import is_refusal, may_have_happened


@pytest.mark.parametrize(
    ("finalizers", "children", "ending"),
    [
        (("ours",), ["c"], Ending.DELETE_CHILDREN),
        (("ours", "theirs"), ["c"], Ending.DELETE_CHILDREN),
        (("ours",), [], Ending.LET_GO),
        (("ours", "orphan"), ["c"], Ending.LET_GO),
        (("ours", "orphan"), [], Ending.LET_GO),
        (("theirs",), ["c"], Ending.OVER),
        (("orphan",), ["c"], Ending.OVER),
        ((), [], Ending.OVER),
    ],
)
def test_an_owner_goes_after_its_children_unless_they_are_to_stay(
    finalizers: tuple[str, ...], children: list[str], ending: Ending
) -> None:
    assert ending_of(ObjectMeta(finalizers=finalizers), "ours", children) is ending


@pytest.mark.parametrize(
    ("error", "maybe", "refusal"),
    [
        (RequestTimeout("no answer"), True, False),
        (TransportError("reset"), True, False),
        (ProtocolError("a torn frame"), True, False),
        (ServerError(500, "InternalError", "etcd"), True, False),
        (ConnectionRefused("nobody there"), False, False),
        (ConnectTimeout("no connection"), False, False),
        (TooManyRequests(429, "TooManyRequests", "later"), False, False),
        (Conflict(409, "Conflict", "another version"), False, False),
        (AlreadyExists(409, "AlreadyExists", "taken"), False, True),
        (Forbidden(403, "Forbidden", "not you"), False, True),
        (Invalid(422, "Invalid", "spec"), False, True),
        (NotFound(404, "NotFound", "gone"), False, True),
    ],
)
def test_what_a_failed_write_says(error: KubeError, *, maybe: bool, refusal: bool) -> None:
    assert may_have_happened(error) is maybe
    assert is_refusal(error) is refusal
