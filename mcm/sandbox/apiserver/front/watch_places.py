"""Decides which client may begin one more watch, so that watches never take every connection.

A watch keeps its connection. Where a few hundred take all of them, the next request waits in the
kernel, and a manager that cannot renew its lease in time ends. So the watches of one kind of client
(all kubectls are one) get most of the connections; the rest is for short requests, and for whoever
watches little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

from mcm.sandbox.apiserver.errors import too_many_requests

_SHARE: Final = 0.75
_ALWAYS: Final = 32
"""Watches that each kind of client may have: more than a manager has mirrors."""
_RETRY_AFTER: Final = 1  # seconds


@final
class WatchPlaces:
    """Counts the watches under way by the client's name, of ``connections`` that there may be."""

    def __init__(self, connections: int) -> None:
        self._most = max(1, int(connections * _SHARE))
        self._by_client: Counter[str] = Counter()

    @contextmanager
    def taken(self, client: str) -> Iterator[None]:
        """Take a place while the context lasts. Raises StatusError (429) if there is none."""
        if self._by_client.total() >= self._most and self._by_client[client] >= _ALWAYS:
            raise too_many_requests(
                f"{self._by_client.total()} watches are open, and this server has places for "
                f"{self._most}: end some, or try again later",
                retry_after=_RETRY_AFTER,
            )
        self._by_client[client] += 1
        try:
            yield
        finally:
            self._by_client[client] -= 1
            if not self._by_client[client]:
                del self._by_client[client]
