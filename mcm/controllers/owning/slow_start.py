"""Careful creation: twice as many at a time as worked before, none after a failure.

A quota that is used up thus costs one refused request, not a hundred.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator


def batches(count: int) -> Iterator[range]:
    """Split ``range(count)`` into batches of 1, 2, 4, 8 … and whatever remains."""
    start, size = 0, 1
    while start < count:
        stop = min(start + size, count)
        yield range(start, stop)
        start, size = stop, size * 2


async def slow_start(
    count: int,
    act: Callable[[int], Awaitable[bool]],
    *,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Call ``act(0)`` … ``act(count - 1)`` in batches; return how many returned True.

    The calls of a batch run together and all end. After a batch with a False the rest is left out,
    and so it is where ``go_on``, asked before each batch, says no.
    Failures that ``act`` expects are its own to report; what it raises cancels its batch and leaves
    as an ExceptionGroup.
    """
    succeeded = 0
    for batch in batches(count):
        if not go_on():
            break
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(_call(act, n)) for n in batch]
        results = [call.result() for call in calls]
        succeeded += sum(results)
        if not all(results):
            break
    return succeeded


async def _call(act: Callable[[int], Awaitable[bool]], number: int) -> bool:
    return await act(number)
