"""Closing what must be closed, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def uninterrupted(cleanup: Callable[[], Awaitable[None]]) -> None:
    """Run ``cleanup`` to its end; a cancellation that arrives meanwhile is raised afterwards.

    For what is bounded by itself: nothing can hurry it.
    """

    async def run() -> None:
        await cleanup()

    running = asyncio.create_task(run(), name="cleanup")
    cancelled = False
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            cancelled = True
    running.result()
    if cancelled:
        raise asyncio.CancelledError
