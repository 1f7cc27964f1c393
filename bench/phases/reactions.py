"""How soon a manager answers a watch event with a write, seen from outside.

Both ends are watch events as the bench receives them on its own watches: what the server needs to
send one counts at both ends and so not at all, while the manager's way (receive, decode, queue,
decide, send) and the server's way of the write count. It can be seen of every manager alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from bench.phases.results import Delays

CREATED: Final = "machine created → VM recorded"
JOINED: Final = "Node joined → machine Running"
DIED: Final = "Node not Ready → machine Unknown"
DELETED: Final = "machine to be deleted → gone"
ANSWERED_BY_ONE_WRITE: Final = (CREATED, JOINED, DIED)
"""Those that are one step; the last is a deletion as a whole, with its Node's."""


@final
class Reactions:
    """Told of what begins and ends, keyed by what it is about; times in monotonic seconds."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], float] = {}
        self._took: dict[str, list[float]] = {}

    def begins(self, what: str, about: str, now: float) -> None:
        """The first beginning counts."""
        self._begun.setdefault((what, about), now)

    def ends(self, what: str, about: str, now: float) -> None:
        """An end of what was not seen to begin says nothing."""
        begun = self._begun.pop((what, about), None)
        if begun is not None:
            self._took.setdefault(what, []).append(now - begun)

    def forget(self, what: str, about: str) -> None:
        self._begun.pop((what, about), None)

    def taken(self) -> dict[str, Sequence[float]]:
        """Return what has ended since the last call."""
        taken, self._took = self._took, {}
        return dict(taken)


def delays(seconds: Iterable[float]) -> Delays | None:
    """Summarize; None of nothing. A percentile is the smallest value that so many do not exceed."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    return Delays(len(ordered), _share(ordered, 0.5), _share(ordered, 0.99), round(ordered[-1], 4))


def _share(ordered: Sequence[float], share: float) -> float:
    rank = -(-len(ordered) * share // 1)  # rounded up
    return round(ordered[max(0, int(rank) - 1)], 4)
