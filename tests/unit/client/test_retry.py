from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.client.errors import (
    ApiError,
    Conflict,
    ConnectionRefused,
    ConnectTimeout,
    CredentialsError,
    Forbidden,
    KubeError,
    NameResolutionError,
    ProtocolError,
    RequestTimeout,
    ServerError,
    ServerTimeout,
    TLSError,
    TooLargeResourceVersion,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from mcm.client.retry import (
    RetryPolicy,
    Safety,
    asked_too_much,
    may_repeat,
    wait_before_retry,
)

ALL = frozenset(Safety)
READ = frozenset({Safety.READ})
NOT_EVICTION = frozenset({Safety.READ, Safety.WRITE})
NONE: frozenset[Safety] = frozenset()

POLICY = RetryPolicy()


@pytest.mark.parametrize(
    ("error", "safe_for"),
    [
        (ConnectionRefused("x"), ALL),
        (NameResolutionError("x"), ALL),
        (ConnectTimeout("x"), ALL),
        (TLSError("x"), NONE),
        (CredentialsError("x"), NONE),
        (TransportError("reset"), READ),
        (RequestTimeout("late"), READ),
        (TooManyRequests(429), NOT_EVICTION),
        (TooManyRequests(429, retry_after=1), NOT_EVICTION),
        (ServerError(500), NONE),
        (ServerError(503, retry_after=1), READ),
        (ServerTimeout(504, retry_after=1), READ),
        (TooLargeResourceVersion(504, retry_after=1), NONE),
        (Conflict(409), NONE),
        (Forbidden(403), NONE),
        (Unauthorized(401), NONE),
        (ApiError(418), NONE),
        (ProtocolError("x"), NONE),
    ],
)
def test_a_request_is_repeated_only_where_nothing_can_happen_twice(
    error: KubeError, safe_for: frozenset[Safety]
) -> None:
    assert {s for s in Safety if may_repeat(error, s)} == safe_for


errors = st.sampled_from(
    [ConnectionRefused("x"), TransportError("x"), TooManyRequests(429), Conflict(409)]
) | st.builds(
    lambda seconds: TooManyRequests(429, retry_after=seconds), st.floats(min_value=0, max_value=90)
)


@given(
    attempt=st.integers(0, 10),
    error=errors,
    safety=st.sampled_from(Safety),
    left=st.floats(min_value=0, max_value=120),
    chance=st.floats(min_value=0, max_value=1, exclude_max=True),
)
def test_a_wait_obeys_the_server_the_budget_and_the_limits(
    attempt: int, error: KubeError, safety: Safety, left: float, chance: float
) -> None:
    wait = wait_before_retry(
        POLICY, attempt=attempt, error=error, safety=safety, left=left, chance=chance
    )
    if wait is None:
        return
    assert attempt < POLICY.retries
    assert may_repeat(error, safety)
    assert wait + POLICY.least_attempt <= left
    asked = error.retry_after if isinstance(error, ApiError) else None
    assert wait >= (asked or 0)
    longest, jitter = POLICY.backoff.longest, POLICY.backoff.spread[1] - 1
    assert wait <= max(asked or 0, longest) + longest * jitter


def test_waits_double_and_are_spread() -> None:
    assert [POLICY.delay(n, None, 0.0) for n in range(4)] == [0.25, 0.5, 1.0, 2.0]
    assert POLICY.delay(1, None, 0.5) == 0.625
    assert POLICY.delay(0, 5.0, 0.5) == 5.0625


def test_a_wait_longer_than_the_call_may_take_is_not_begun() -> None:
    error = TooManyRequests(429, retry_after=60)
    assert (
        wait_before_retry(POLICY, attempt=0, error=error, safety=Safety.READ, left=30, chance=0)
        is None
    )


@pytest.mark.parametrize(
    ("error", "for_"),
    [
        (TooManyRequests(429, retry_after=1), NOT_EVICTION),
        (ServerError(503, retry_after=1), ALL),
        (ServerTimeout(504, retry_after=1), ALL),
        (TooLargeResourceVersion(504, retry_after=1), NONE),
        (ServerError(500), NONE),
        (Conflict(409), NONE),
    ],
)
def test_what_says_that_a_server_has_too_much_to_do(
    error: ApiError, for_: frozenset[Safety]
) -> None:
    assert {safety for safety in Safety if asked_too_much(error, safety)} == for_
