"""How many requests the clients send to the API servers, and how fast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ApiRequests:
    """``qps`` 0 is no limit: the servers decide, and ``max_in_flight`` bounds."""

    qps: float = 0.0
    burst: int = 30
    max_in_flight: int = 64

    def validate(self) -> list[str]:
        problems = []
        if not 0 <= self.qps < math.inf:
            problems.append(
                "--kube-api-qps: must be a number and not negative (0 switches the limit off)"
            )
        if self.burst < 0:
            problems.append("--kube-api-burst: must not be negative")
        if self.max_in_flight < 1:
            problems.append("--max-in-flight: must be at least 1")
        return problems
