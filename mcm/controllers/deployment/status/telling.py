"""Says why nothing is done for a deployment, and tells once, as an event, what is news."""

from __future__ import annotations

from typing import Final, final

import msgspec

from mcm.api.machine import MACHINE_DEPLOYMENTS, MachineDeployment, MachineDeploymentStatus
from mcm.api.names import (
    CONDITION_DRAIN_BLOCKED,
    CONDITION_ORPHANED_MACHINES,
    CONDITION_PROGRESSING,
    CONDITION_STRATEGY_ADJUSTED,
    CONDITION_SURGE_POOL,
    REASON_NEW_MACHINES_FAILING,
)
from mcm.clock import Clock
from mcm.controllers.deployment.status.progress import refused
from mcm.controllers.owning import OwnerWriter
from mcm.events import EventSink

_TOLD_AS_EVENTS: Final = frozenset(
    {
        CONDITION_DRAIN_BLOCKED,
        CONDITION_ORPHANED_MACHINES,
        CONDITION_STRATEGY_ADJUSTED,
        CONDITION_SURGE_POOL,
    }
)


@final
class DeploymentTelling:
    """Writes through ``writer``, and makes no event for what was said before."""

    def __init__(
        self, writer: OwnerWriter[MachineDeployment], events: EventSink, clock: Clock
    ) -> None:
        self._writer = writer
        self._events = events
        self._clock = clock

    async def refuse(
        self, deployment: MachineDeployment, reason: str, complaint: str, *, event: str = ""
    ) -> None:
        """Say in the condition ``Progressing``, and once as an event (``event``, if its reason is
        another one), why nothing is done."""
        conditions = refused(deployment.status.conditions, reason, complaint, self._clock.now())
        wanted = msgspec.structs.replace(
            deployment.status,
            conditions=conditions,
            observed_generation=deployment.metadata.generation,
        )
        if await self._writer.write_status(deployment, wanted):
            self.warn(deployment, event or reason, complaint)

    def news(self, deployment: MachineDeployment, status: MachineDeploymentStatus) -> None:
        """Tell what conditions of ``status`` say that those of ``deployment`` did not."""
        before = {(c.type, c.reason) for c in deployment.status.conditions}
        failing = (CONDITION_PROGRESSING, REASON_NEW_MACHINES_FAILING)
        for said in status.conditions:
            told = said.type in _TOLD_AS_EVENTS or (said.type, said.reason) == failing
            if told and (said.type, said.reason) not in before:
                self.warn(deployment, said.reason, said.message)

    def warn(self, deployment: MachineDeployment, reason: str, note: str) -> None:
        self._events.event(MACHINE_DEPLOYMENTS, deployment, "Warning", reason, note)
