"""Children that were asked for without ever hearing the answer.

A creation that timed out, or whose connection broke, may have happened. Until the store shows the
child, its name is asked for again before any new one: it exists then exactly once, whatever became
of the first request. That holds also for names that are not needed just now: whoever wants fewer
for a while and then as many as before is not to get some of them twice. The names are this
process's memory; a successor starts from a list, which shows the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final


@final
class UnconfirmedCreations:
    """Names of children by the key of the owner that asked for them."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}  # a dict keeps the order of asking

    def __len__(self) -> int:
        return sum(map(len, self._names.values()))

    def add(self, owner_key: str, name: str) -> None:
        self._names.setdefault(owner_key, {})[name] = None

    def settle(self, owner_key: str, name: str) -> None:
        """The child was seen, or its creation answered."""
        names = self._names.get(owner_key, {})
        names.pop(name, None)
        if not names:
            self._names.pop(owner_key, None)

    def pending(self, owner_key: str, *, exists: Callable[[str], bool]) -> Sequence[str]:
        """Return the names still to be asked for; those that exist by now are settled."""
        for name in tuple(self._names.get(owner_key, ())):
            if exists(name):
                self.settle(owner_key, name)
        return tuple(self._names.get(owner_key, ()))

    def forget(self, owner_key: str) -> None:
        """The owner is no more, or on its way out: nothing will be asked for again."""
        self._names.pop(owner_key, None)
