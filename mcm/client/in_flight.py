"""How many requests may be under way at once: as many as are allowed, fewer where that is too many.

Pure: told the time, and what became of each request. A server that is asked for more than it can do
says so (429, or 503 with a Retry-After). Then the limit is cut, once for all requests that were
under way; after the time that the server asked for it grows again, by one for each round of
answers, up to what is allowed. So those that are refused are few, one or two a round once the right
number is found, nobody needs to know what the server can bear, and a limit that was cut to one is
whole again after about ``most ** 2 / 2`` answers.

Who gets no answer cuts nothing: a webhook or a network that swallows some objects' requests would
have those that hang hold all that is left. How long answers take says nothing either: a server at
its limit makes as many in a second whether 16 wait for theirs or 64 (measured on a real one,
``docs/api-requests.md``), and a slow webhook would be taken for a busy server.
"""

from __future__ import annotations

import math
from typing import Final, final

KEPT: Final = 0.7
"""The share of the requests under way that the limit is cut to."""


@final
class InFlightLimit:
    """``most`` are allowed where nothing is refused. Times are monotonic seconds."""

    __slots__ = ("_cut_at", "_grows_from", "_limit", "_most")

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"at least one request must be allowed, got {most}")
        self._most = most
        self._limit = float(most)
        self._cut_at = -math.inf
        self._grows_from = -math.inf

    @property
    def now_allowed(self) -> int:
        """How many may be under way: from 1 to ``most``."""
        return int(self._limit)

    def served(self, *, in_flight: int, now: float) -> None:
        """Take note of an answer, while so many were under way, that one included. A limit that
        was not used up is not known to be too low."""
        if self._limit >= self._most or now < self._grows_from or in_flight < self.now_allowed:
            return
        self._limit = min(self._limit + 1.0 / self._limit, float(self._most))

    def refused(self, *, in_flight: int, begun: float, now: float, wait: float) -> None:
        """Take note that the server was asked for too much, by a request that was sent at
        ``begun``, while so many were under way, and that it wants to be spared for ``wait``
        seconds."""
        self._grows_from = max(self._grows_from, now + wait)
        if begun < self._cut_at:
            return  # it left before the last cut, which it says nothing about
        self._cut_at = now
        self._limit = max(1.0, KEPT * min(self._limit, in_flight))
