"""How much of what takes long is run: a part while somebody works, more in CI, all on demand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

EVERYTHING: Final = os.environ.get("MCM_TESTS") == "all"
THOROUGH: Final = EVERYTHING or os.environ.get("CI") == "true"


def part_of(everything: Sequence[T], *, one_in: int, in_ci: int = 1) -> Sequence[T]:
    """Return every ``one_in``-th, the first among them; with ``CI=true`` every ``in_ci``-th, and
    all of them with ``MCM_TESTS=all``."""
    if EVERYTHING:
        return everything
    return everything[:: in_ci if THOROUGH else one_in]
