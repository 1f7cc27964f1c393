"""Keys that need work: deduplicated, delayed, rate limited, ordered by priority.

What the queue promises, for any hashable key:

* **stingy**: adds of a key that is already waiting collapse into one;
* **exclusive**: a key handed out by ``get()`` is not handed out again before ``done()``; an add in
  between causes exactly one more run;
* **fair**: higher priority first, first come first served inside a priority, and a waiting key
  gains priority with time, so that nothing starves;
* **punctual**: a delayed key becomes ready once, never early, at the earliest time asked for;
* **orderly at the end**: after ``shut_down()`` adds are refused, what is ready is still handed
  out, delayed keys are dropped and counted, and then ``get()`` raises :class:`QueueShutDown`.

:mod:`.backoff` and :mod:`.token_bucket` are everybody's: whoever waits after failures, or limits a
rate, anywhere in the project, does it by these.

:mod:`.state` is the synchronous state machine, :mod:`.queue` its asyncio driver. Cancelling a
blocked ``get()`` loses no key. Not thread-safe: one queue belongs to one event loop.
"""

from __future__ import annotations

from mcm.workqueue.limiters import (
    BucketLimiter,
    ExponentialLimiter,
    MaxOfLimiter,
    RateLimiter,
    default_limiter,
)
from mcm.workqueue.metrics import QueueMetrics
from mcm.workqueue.queue import QueueShutDown, WorkQueue
from mcm.workqueue.state import INITIAL_PRIORITY

__all__ = [
    "INITIAL_PRIORITY",
    "BucketLimiter",
    "ExponentialLimiter",
    "MaxOfLimiter",
    "QueueMetrics",
    "QueueShutDown",
    "RateLimiter",
    "WorkQueue",
    "default_limiter",
]
