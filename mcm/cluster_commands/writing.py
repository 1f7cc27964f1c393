"""Writes what follows from what was read, and reads anew where somebody else wrote in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from mcm.client.errors import Conflict

R = TypeVar("R")

_TRIES: Final = 5
"""An object that is being worked on is written often; a change is computed anew so many times."""


async def tried_anew(attempt: Callable[[], Awaitable[R]]) -> R:
    """Read, decide and write by ``attempt``, and again upon Conflict. Raises what the last does."""
    for _ in range(_TRIES - 1):
        with suppress(Conflict):
            return await attempt()
    return await attempt()
