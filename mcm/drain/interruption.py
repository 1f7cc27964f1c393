"""Ends a pass's wait for answers: once somebody wants something else, or its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

MOMENT: Final = 0.5
"""Seconds in which answers may still come, so that a server that answers as usual loses none."""


@final
class Interruption:
    """One for each drain. A server may take half a minute over an answer; a person who wants a
    drain harder, or to end, does not wait for that, nor does its deadline."""

    def __init__(self) -> None:
        self._called = False
        self._limit: asyncio.Timeout | None = None

    @property
    def called(self) -> bool:
        """What the pass under way was asked for is not what is wanted now."""
        return self._called

    def begin(self) -> None:
        """A pass begins, with what is wanted now."""
        self._called = False

    def call(self) -> None:
        """Something else is wanted: the pass under way ends in a moment."""
        self._called = True
        if self._limit is not None:
            self._shorten(self._limit)

    @asynccontextmanager
    async def limit(self, within: float | None) -> AsyncIterator[None]:
        """Cancel what the context does after ``within`` seconds, or a moment after it was called.
        Raises TimeoutError then."""
        async with asyncio.timeout(within) as limit:
            self._limit = limit
            if self._called:
                self._shorten(limit)
            try:
                yield
            finally:
                self._limit = None

    @staticmethod
    def _shorten(limit: asyncio.Timeout) -> None:
        if limit.expired():
            return
        end = asyncio.get_running_loop().time() + MOMENT
        before = limit.when()
        limit.reschedule(end if before is None else min(before, end))
