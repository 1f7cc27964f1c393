"""Makes the set of a deployment's template, once it is known that none like it comes back."""

from __future__ import annotations

from typing import Final, final

import msgspec

from mcm.api.machine import MachineDeployment
from mcm.api.names import REASON_SET_CREATE_ERROR
from mcm.client.errors import AlreadyExists, ApiError, Conflict
from mcm.clock import Clock
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.sets.returning_machines import is_overdue
from mcm.controllers.deployment.sets.wanted import completed_sets, new_set
from mcm.controllers.deployment.sets.writes import SetActions
from mcm.controllers.deployment.sizes.bounds import recorded_bounds
from mcm.controllers.deployment.status.telling import DeploymentTelling
from mcm.controllers.owning import NameTaken, OwnerWriter

_NAMESPACE_ENDS: Final = "NamespaceTerminating"


@final
class SetCreation:
    """What prevents it is told and raised."""

    def __init__(
        self,
        sets: SetActions,
        writer: OwnerWriter[MachineDeployment],
        telling: DeploymentTelling,
        clock: Clock,
    ) -> None:
        self._sets = sets
        self._writer = writer
        self._telling = telling
        self._clock = clock

    async def create(self, snapshot: DeploymentSnapshot, replicas: int) -> None:
        """Create the set, with so many ``replicas``."""
        deployment = snapshot.deployment
        await self._await_orphans(snapshot)
        for present, marked in completed_sets(snapshot):
            await self._sets.change(deployment, present, marked)
        wanted = new_set(
            deployment,
            snapshot.sets,
            replicas=replicas,
            bounds=recorded_bounds(deployment.spec),
            mark=self._sets.mark_of_orphans(deployment, snapshot.sets),
        )
        try:
            await self._sets.create(deployment, wanted)
        except NameTaken:
            collisions = (deployment.status.collision_count or 0) + 1
            taken = msgspec.structs.replace(deployment.status, collision_count=collisions)
            await self._writer.write_status(deployment, taken)
            raise
        except AlreadyExists:
            raise  # it is there and not known yet, as after a lost answer
        except ApiError as error:
            if not any(cause.reason == _NAMESPACE_ENDS for cause in error.causes):
                note = f"Could not create machine set {wanted.metadata.name}: {error}"
                await self._telling.refuse(deployment, REASON_SET_CREATE_ERROR, note)
            raise

    async def _await_orphans(self, snapshot: DeploymentSnapshot) -> None:
        """Make no set before it is known what becomes of those that are given up. Raises Conflict,
        and says so if it takes longer than a garbage collector needs."""
        deployment, now = snapshot.deployment, self._clock.now()
        awaited = self._sets.awaited(deployment, snapshot.sets, now)
        if not awaited:
            return
        names = ", ".join(sorted(s.metadata.name for s in awaited))
        note = (
            f"No machine set is made while others are being given up by their owner, or give their "
            f"machines up: {names}. The garbage collector has yet to take owner references off"
        )
        if any(is_overdue(s, now) for s in awaited):
            await self._telling.refuse(deployment, REASON_SET_CREATE_ERROR, note)
        raise Conflict(409, "Conflict", note)
