"""How far a drain is, as it is shown to the person who asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, final

from mcm.drain.result import PodStanding


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One look. ``gone`` pods of all that were to go have left; ``standings`` are the others.

    ``deadline`` is when it ends, by force if ``by_force``. ``blind`` says why nothing can be
    observed.
    """

    node: str
    standings: tuple[PodStanding, ...] = ()
    gone: int = 0
    deadline: datetime
    by_force: bool = False
    blind: str = ""


class Display(Protocol):
    """Is told what happens, in lines, and shown how far it is."""

    def say(self, line: str) -> None: ...

    def show(self, progress: Progress) -> None: ...
