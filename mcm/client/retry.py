"""Whether a failed request may be sent again, and when: a pure decision.

Sending again must never do a thing twice. A read may always be repeated. A write may be repeated
only where the server certainly did nothing: the request was not sent, or it was refused with 429.
The 429 of an eviction is an answer, not overload: a disruption budget refused, and the drain
decides what follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mcm.client.errors import (
    ApiError,
    ConfigurationError,
    CredentialsError,
    KubeError,
    NotSent,
    ServerError,
    TLSError,
    TooLargeResourceVersion,
    TooManyRequests,
    TransportError,
)
from mcm.workqueue.backoff import Backoff, longer_by


class Safety(Enum):
    """What repeating a request may do."""

    READ = "read"
    WRITE = "write"
    EVICTION = "eviction"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and with which waits; the server's Retry-After is a lower bound of a wait."""

    retries: int = 4
    backoff: Backoff = Backoff(0.25, 8.0, spread=longer_by(0.5))  # noqa: RUF009 - frozen
    least_attempt: float = 1.0

    def delay(self, attempt: int, retry_after: float | None, chance: float) -> float:
        """Return how long to wait after failed attempt number ``attempt`` (from 0).

        ``chance`` in [0, 1) spreads the waits of many clients: beyond what the server asked for.
        """
        wait = self.backoff.delay(attempt, chance)
        return wait + max(0.0, (retry_after or 0.0) - self.backoff.length(attempt))


def may_repeat(error: KubeError, safety: Safety) -> bool:
    """Tell whether a request of this kind may be sent again after ``error``."""
    match error:
        case TLSError() | CredentialsError() | ConfigurationError():
            return False  # nothing a quick second try would change
        case NotSent():
            return True
        case TooManyRequests():
            return safety is not Safety.EVICTION
        case TooLargeResourceVersion():
            return False  # the caller can do better: read the newest instead
        case ServerError():
            return safety is Safety.READ and error.retry_after is not None
        case TransportError():
            return safety is Safety.READ
        case _:
            return False


def asked_too_much(error: ApiError, safety: Safety) -> bool:
    """Tell whether a server that answers so has more requests than it can bear."""
    match error:
        case TooManyRequests():
            return safety is not Safety.EVICTION
        case TooLargeResourceVersion():
            return False
        case ServerError():
            return error.retry_after is not None
        case _:
            return False


def wait_before_retry(
    policy: RetryPolicy,
    *,
    attempt: int,
    error: KubeError,
    safety: Safety,
    left: float,
    chance: float,
) -> float | None:
    """Return the seconds to wait before sending again, or None to give up.

    ``left`` is what remains of the call's time: a wait that would not leave ``least_attempt`` of
    it is not begun, so the caller's own back-off takes over, with the real error in hand.
    """
    if attempt >= policy.retries or not may_repeat(error, safety):
        return None
    retry_after = error.retry_after if isinstance(error, ApiError) else None
    delay = policy.delay(attempt, retry_after, chance)
    return delay if delay + policy.least_attempt <= left else None
