"""A profile: call stacks, and what was measured at each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from mcm.profiling.stacks import Stack


@final
@dataclass(frozen=True, slots=True)
class Measure:
    """What a number of a sample means, in the words of pprof: ``cpu`` in ``nanoseconds``."""

    kind: str
    unit: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """``samples`` has a number for each of ``measures``; ``seconds`` is how long it was taken."""

    measures: tuple[Measure, ...]
    samples: Mapping[Stack, tuple[int, ...]]
    seconds: float = 0.0
    started_at: float = 0.0
