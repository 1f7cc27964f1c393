"""Machines that were asked for without ever hearing the answer.

A creation that timed out, or whose connection broke, may have happened. Until the store shows the
machine, its name is asked for again before any new one: it exists then exactly once, whatever
became of the first request. The names are this process's memory; a successor starts from a list,
which shows the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import final


@final
class UnconfirmedMachines:
    """Names of machines by the key of the set that asked for them."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}  # a dict keeps the order of asking

    def __len__(self) -> int:
        return sum(map(len, self._names.values()))

    def add(self, set_key: str, name: str) -> None:
        self._names.setdefault(set_key, {})[name] = None

    def settle(self, set_key: str, name: str) -> None:
        """The machine was seen, or will certainly never be."""
        names = self._names.get(set_key, {})
        names.pop(name, None)
        if not names:
            self._names.pop(set_key, None)

    def pending(self, set_key: str, *, exists: Callable[[str], bool]) -> Sequence[str]:
        """Return the names still to be asked for; those that exist by now are settled."""
        for name in tuple(self._names.get(set_key, ())):
            if exists(name):
                self.settle(set_key, name)
        return tuple(self._names.get(set_key, ()))

    def keep_only(self, set_key: str, names: Collection[str]) -> None:
        """Forget what ``set_key`` needs no more; all of it, if ``names`` is empty."""
        for name in tuple(self._names.get(set_key, ())):
            if name not in names:
                self.settle(set_key, name)
