"""Whether to lead by leases, and the timing of these."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import final


@final
@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Lease timing, as in client-go: lease > renew deadline > retry period."""

    enabled: bool = True
    lease_duration: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)
    resource_lock: str = "leases"

    def validate(self) -> list[str]:
        problems = []
        if self.resource_lock != "leases":
            problems.append(
                f"--leader-elect-resource-lock: {self.resource_lock!r} is not supported; only "
                "leases are, as Kubernetes removed the locks on endpoints and config maps"
            )
        if not self.enabled:
            return problems
        if self.retry_period <= timedelta(0):
            problems.append("--leader-elect-retry-period: must be positive")
        if self.renew_deadline <= self.retry_period * 1.2:
            problems.append(
                "--leader-elect-renew-deadline: must exceed 1.2 times --leader-elect-retry-period"
            )
        if self.lease_duration <= self.renew_deadline + self.retry_period:
            problems.append(
                "--leader-elect-lease-duration: must exceed --leader-elect-renew-deadline plus "
                "--leader-elect-retry-period, else the lease could lapse before we give up"
            )
        return problems
