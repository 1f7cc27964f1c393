"""Which pods keep a drain from going on, in words: for people to mend, or likely to pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, final

from mcm.controllers.wording import first_few
from mcm.drain.result import Cause, PodStanding

PATIENCE: Final = timedelta(minutes=1)
"""A pod that is held for longer is worth an event; for less is how budgets work."""
_HELD: Final = (
    Cause.HELD_BY_BUDGET,
    Cause.BUDGET_MISCONFIGURED,
    Cause.SEVERAL_BUDGETS,
    Cause.REFUSED,
    Cause.SERVER_BUSY,
    Cause.NAMESPACE_ENDS,
)
_NAMED: Final = 3


@final
@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a gentle drain from going on."""

    lasting: tuple[str, ...]
    """For people to mend: shown on the machine."""
    patient: tuple[str, ...]
    """Likely to pass: shown in an event, once it takes long."""


def trouble_of(standings: Sequence[PodStanding], now: datetime) -> Trouble:
    """Sort out of where pods stand what is worth telling."""
    return Trouble(
        lasting=tuple(words_for(s) for s in standings if s.lasting),
        patient=tuple(words_for(s) for s in standings if not s.lasting and _takes_long(s, now)),
    )


def words_for(standing: PodStanding) -> str:
    return f"pod {standing.pod}: {standing.detail or standing.cause.value}"


def listed(texts: Iterable[str]) -> str:
    """Join the first few in a stable order, and count the rest."""
    return first_few(sorted(texts), _NAMED, separator="; ")


def _takes_long(standing: PodStanding, now: datetime) -> bool:
    if standing.cause is Cause.OVERDUE:
        return True
    since = standing.since
    return standing.cause in _HELD and since is not None and now - since >= PATIENCE
