"""All rules of the driver contract, in the order in which they are checked."""

from __future__ import annotations

from typing import Final

from mcm.conformance.rule import Rule, rules_in
from mcm.conformance.rules import (
    cancellation,
    concurrency,
    existence,
    initialization,
    migration,
    neighbours,
    refusals,
    repetition,
    updates,
    volumes,
)

RULES: Final[tuple[Rule, ...]] = tuple(
    found
    for module in (
        existence,
        repetition,
        initialization,
        concurrency,
        cancellation,
        refusals,
        neighbours,
        updates,
        volumes,
        migration,
    )
    for found in rules_in(module)
)
