"""Which controllers this process runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.controllers.selection import ALL, Group, groups_of, problems_of, selected


@final
@dataclass(frozen=True, slots=True)
class ControllerChoice:
    """``words`` are as :mod:`mcm.controllers.selection` reads them."""

    words: tuple[str, ...] = (ALL,)

    @property
    def names(self) -> frozenset[str]:
        """The controllers that run."""
        return selected(self.words)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of which at least one runs: each acts under a lease of its own."""
        return groups_of(self.names)

    def validate(self) -> list[str]:
        return [f"--controllers: {problem}" for problem in problems_of(self.words)]
