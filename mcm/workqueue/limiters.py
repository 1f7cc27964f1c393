"""How long a failed key must wait: pure functions of its history and of the time given.

The defaults are those every Kubernetes controller has: 5 ms doubling to 1000 s for a key, and ten
retries a second (after a burst of a hundred) for the whole queue, whichever is longer.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar, final

from mcm.workqueue.backoff import Backoff
from mcm.workqueue.token_bucket import TokenBucket

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[K_contra]):
    """Chooses delays. Never blocks, never raises; ``now`` is monotonic and in seconds."""

    def delay(self, key: K_contra, now: float) -> float:
        """Count one more failure of ``key`` and return the seconds until it may run again."""
        ...

    def forget(self, key: K_contra) -> None:
        """Drop the history of ``key``: it succeeded, or nobody cares any more."""
        ...

    def failures(self, key: K_contra) -> int:
        """Return how often ``key`` was delayed since it was last forgotten."""
        ...


@final
class ExponentialLimiter(Generic[K]):
    """``min(base * 2**n, cap)`` seconds at the n-th failure in a row (n from 0) of one key."""

    def __init__(self, base: float = 0.005, cap: float = 1000.0) -> None:
        self._backoff = Backoff(base, cap)
        self._failures: dict[K, int] = {}

    def delay(self, key: K, now: float) -> float:
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        return self._backoff.length(count)

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)


@final
class BucketLimiter(Generic[K]):
    """A token bucket for all keys together; each delay reserves the next token.

    ``rate`` is in tokens a second, ``burst`` how many may be taken at once after a quiet time.
    """

    def __init__(self, rate: float = 10.0, burst: int = 100) -> None:
        self._bucket = TokenBucket(rate=rate, burst=burst)

    def delay(self, key: K, now: float) -> float:
        return self._bucket.reserve(now)

    def forget(self, key: K) -> None:
        """A token spent stays spent."""

    def failures(self, key: K) -> int:
        return 0


@final
class MaxOfLimiter(Generic[K]):
    """The longest delay of several limiters; each of them counts every failure."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        if not limiters:
            raise ValueError("need at least one limiter")
        self._limiters = limiters

    def delay(self, key: K, now: float) -> float:
        return max([limiter.delay(key, now) for limiter in self._limiters])

    def forget(self, key: K) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def failures(self, key: K) -> int:
        return max(limiter.failures(key) for limiter in self._limiters)


def default_limiter() -> RateLimiter[Hashable]:
    """Return the limiter of a controller's queue; it accepts keys of any type."""
    return MaxOfLimiter[Hashable](ExponentialLimiter(), BucketLimiter())
