"""Which benches there are, in which order they run, and how long each should take in short form."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final


@dataclass(frozen=True, slots=True)
class Bench:
    """``seconds`` is its share of the ten minutes, ``patience`` after how many it is ended."""

    name: str
    seconds: int
    what: str
    package: str = "bench"

    @property
    def module(self) -> str:
        return f"{self.package}.{self.name}"

    @property
    def patience(self) -> float:
        return 4.0 * self.seconds + 60.0

    @property
    def exists(self) -> bool:
        return find_spec(self.module) is not None


BENCHES: Final = (
    Bench("workqueue", 15, "operations of the work queue"),
    Bench("drain", 20, "how long drains take, in virtual time"),
    Bench("informer", 110, "from a watch's bytes to a queued key, beside other clients"),
    Bench("growth", 80, "cost a machine as the fleet grows, in virtual time"),
    Bench("startup", 60, "cold start and failover of a large fleet"),
    Bench("steady", 60, "a large fleet in which nothing, or little, happens"),
    Bench("fleet", 180, "machines created, rolled, scaled, killed and deleted"),
)
"""The short ones come first: what breaks, breaks early."""
