"""Ends the process in time, although tasks or threads of a driver do not heed their end.

An event loop closes when all its tasks and the threads of its executor have ended. A driver that
swallows its cancellation, or blocks in a thread, would keep alive a process that lost its lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable
from typing import Self, final

logger = logging.getLogger(__name__)


@final
class ForcedExit:
    """Around the life of an event loop: ``grace`` seconds after :meth:`after` has ended, the loop
    must have been closed and this left, or the process exits."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def after(self, main: Awaitable[None]) -> None:
        """Await ``main``; from its end on time runs. Raises what it raises."""
        code, cause = 0, ""
        try:
            await main
        except BaseException as error:
            code, cause = 1, f"{type(error).__name__}: {error}"
            raise
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            names = sorted(task.get_name() for task in left)
            self._timer = threading.Timer(self._grace, self._exit, (code, cause, names))
            self._timer.daemon = True
            self._timer.start()

    def _exit(self, code: int, cause: str, names: list[str]) -> None:
        logger.critical(
            "exiting although something does not end: %s%s",
            ", ".join(names) or "a thread",
            f" (after {cause})" if cause else "",
        )
        logging.shutdown()
        os._exit(code)
