"""One look at one deployment: it bears the label as long as one of its sets does.

Who asks that it be unfrozen (annotation ``safety.machine.sapcloud.io/unfreeze``) has all its sets
unfrozen. The request is taken off last: what was interrupted is carried on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MachineDeployment, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import CONDITION_FROZEN, EVENT_FROZE_DEPLOYMENT, EVENT_UNFROZE_DEPLOYMENT
from mcm.client.verbs import ObjectWriter
from mcm.controllers.fanout import patch_each, raise_together
from mcm.controllers.overshooting.decision import is_frozen, is_unfreeze_asked
from mcm.controllers.overshooting.explanation import froze_with, unfroze_deployment
from mcm.controllers.overshooting.freeze_events import FreezeEvents, Note, Reasons
from mcm.controllers.overshooting.labelling import freezing, unfreezing
from mcm.controllers.owning import children_of
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventSink
from mcm.informers.store import Store


@final
class DeploymentFreeze:
    """Stateless, but for what was told: every pass starts from the stores."""

    def __init__(
        self,
        *,
        deployments: Store[MachineDeployment],
        sets: Store[MachineSet],
        writer: ObjectWriter,
        events: EventSink,
    ) -> None:
        self._deployments = deployments
        self._sets = sets
        self._writer = writer
        self._events = FreezeEvents(
            MACHINE_DEPLOYMENTS, Reasons(EVENT_FROZE_DEPLOYMENT, EVENT_UNFROZE_DEPLOYMENT), events
        )

    async def reconcile(self, key: str) -> Outcome:
        """Let the label of the deployment ``key`` be what its sets' are. Raises what the client
        does; Conflict, if the deployment is not any more what was looked at."""
        deployment = self._deployments.get(key)
        if deployment is None:
            self._events.forget(key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return DONE
        if is_unfreeze_asked(deployment.metadata):
            await self._unfreeze_sets(deployment)
        change = self._change(deployment)
        if change:
            await self._carry_out(deployment, change)
        else:
            self._observe(deployment)
        return DONE

    async def _carry_out(self, deployment: MachineDeployment, change: JSONObject) -> None:
        before, note = deployment.metadata, self._note_on(deployment)
        after = await self._writer.patch(
            MACHINE_DEPLOYMENTS,
            before.name,
            for_this_version(before, change),
            namespace=before.namespace,
        )
        if is_frozen(before) != is_frozen(after.metadata):
            self._events.tell(deployment, note, frozen=is_frozen(after.metadata))

    def _observe(self, deployment: MachineDeployment) -> None:
        """Tell of what others did, and of an own act that was never answered."""
        shown = any(c.type == CONDITION_FROZEN for c in deployment.status.conditions)
        frozen = is_frozen(deployment.metadata)
        self._events.observe(deployment, self._note_on(deployment), frozen=frozen, shown=shown)

    def _note_on(self, deployment: MachineDeployment) -> Note:
        names = [s.metadata.name for s in self._frozen_sets(deployment)]

        def note(*, frozen: bool) -> str:
            return froze_with(names) if frozen else unfroze_deployment()

        return note

    def _change(self, deployment: MachineDeployment) -> JSONObject:
        meta = deployment.metadata
        if is_unfreeze_asked(meta) or not self._frozen_sets(deployment):
            return unfreezing(meta)
        return {} if is_frozen(meta) else freezing()

    async def _unfreeze_sets(self, deployment: MachineDeployment) -> None:
        sets = self._frozen_sets(deployment)
        errors = await patch_each(
            self._writer, MACHINE_SETS, ((s.metadata, unfreezing(s.metadata)) for s in sets)
        )
        raise_together(f"sets of machine deployment {deployment.metadata.key}", errors)

    def _frozen_sets(self, deployment: MachineDeployment) -> Sequence[MachineSet]:
        return frozen_sets(children_of(self._sets, deployment.metadata.uid))


def frozen_sets(sets: Sequence[MachineSet]) -> Sequence[MachineSet]:
    """Return those of a deployment's ``sets`` for which it counts as frozen: one that is being
    deleted makes no machines in any case."""
    return tuple(s for s in sets if is_frozen(s.metadata) and s.metadata.deletion_timestamp is None)
