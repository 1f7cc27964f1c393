"""Whether the process shows where its time and memory go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Profiling:
    """``contention`` is about what the event loop stands still in; it is part of the profiles."""

    profiling: bool = False
    contention_profiling: bool = False

    def validate(self) -> list[str]:
        if self.contention_profiling and not self.profiling:
            return ["--contention-profiling: needs --profiling"]
        return []
