"""One pass over one MachineDeployment: gather, decide, act, report.

Steps that do not need one another do not stop one another: what went wrong is collected, the status
is written all the same, and the errors are raised at the end for a retry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Final, final

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    Machine,
    MachineDeployment,
    MachineDeploymentStatus,
    MachineSet,
)
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_REVISION,
    MACHINE_FINALIZER,
    REASON_INVALID_SPEC,
    REASON_NO_TARGET_CLUSTER,
)
from mcm.api.selectors import is_empty
from mcm.api.validation import describe, validate_machine_deployment
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.client.verbs import ObjectReader, ObjectWriter
from mcm.clock import Clock
from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.in_place_update.hand_over import HandOver
from mcm.controllers.deployment.in_place_update.remarks import remark_on
from mcm.controllers.deployment.in_place_update.standing import UpdateView
from mcm.controllers.deployment.in_place_update.transfer import unpinned
from mcm.controllers.deployment.nodes import NodeMarker, has_tainted_nodes
from mcm.controllers.deployment.revisions.automatic_rollback import automatic_rollback, due_at
from mcm.controllers.deployment.revisions.numbers import beyond_history
from mcm.controllers.deployment.revisions.rollback import rollback
from mcm.controllers.deployment.scale_down_marks import scale_down_marks, time_of_change
from mcm.controllers.deployment.sets.creation import SetCreation
from mcm.controllers.deployment.sets.wanted import (
    wanted_sets,
    without_taint_annotation,
)
from mcm.controllers.deployment.sets.writes import SetActions, set_change
from mcm.controllers.deployment.sizes.bounds import Bounds, bounds_of
from mcm.controllers.deployment.status.progress import (
    is_complete,
    look_again_at,
)
from mcm.controllers.deployment.status.status import (
    counted_status,
    status_after,
)
from mcm.controllers.deployment.status.telling import DeploymentTelling
from mcm.controllers.deployment.surge_pool.turns import PoolTurns
from mcm.controllers.deployment.templates import labelling
from mcm.controllers.fanout import raise_together
from mcm.controllers.overshooting.limits import SetLimits
from mcm.controllers.owning import Ending, OwnerWriter, ending_of
from mcm.controllers.runtime import DONE, Outcome, earliest
from mcm.events import EventSink
from mcm.informers.store import Store

EVENT_SELECTING_ALL: Final = "SelectingAll"


@final
class DeploymentReconciler:
    """Every pass starts from the stores; only writes that surge pools must not forget are kept.

    ``nodes`` and ``mover`` are None without a target cluster. ``wake`` takes keys of other
    deployments.
    """

    def __init__(
        self,
        *,
        deployments: Store[MachineDeployment],
        sets: Store[MachineSet],
        machines: Store[Machine],
        reader: ObjectReader,
        writer: ObjectWriter,
        events: EventSink,
        clock: Clock,
        nodes: NodeMarker | None,
        mover: HandOver | None,
        max_replicas: int,
        wake: Callable[[Iterable[str]], None],
        limits: SetLimits,
    ) -> None:
        self._deployments = deployments
        self._writer = OwnerWriter(MACHINE_DEPLOYMENTS, writer)
        self._sets = SetActions(deployments, sets, machines, reader, writer, events)
        self._telling = DeploymentTelling(self._writer, events, clock)
        self._creation = SetCreation(self._sets, self._writer, self._telling, clock)
        self._nodes = nodes
        self._limits = limits
        self._mover = mover
        self._events = events
        self._clock = clock
        self._max_replicas = max_replicas
        self._pools = PoolTurns(
            deployments,
            lambda deployment: self._look_closely(deployment)[0],
            clock,
            is_valid=lambda deployment: not self._complaint_about(deployment),
            wake=wake,
        )

    async def reconcile(self, key: str) -> Outcome:
        """Bring the deployment ``key`` one step closer to its spec. Raises what the client does."""
        deployment = self._deployments.get(key)
        if deployment is None:
            self._pools.forget(key)
            return DONE
        if deployment.metadata.deletion_timestamp is not None:
            return await self._retire(deployment)
        if complaint := self._complaint_about(deployment):
            selector = deployment.spec.selector
            selects_all = selector is not None and is_empty(selector)
            event = EVENT_SELECTING_ALL if selects_all else REASON_INVALID_SPEC
            await self._telling.refuse(deployment, REASON_INVALID_SPEC, complaint, event=event)
            return DONE
        deployment = await self._writer.keep_finalizer(deployment, MACHINE_FINALIZER)
        return await self._manage(deployment)

    async def _manage(self, deployment: MachineDeployment) -> Outcome:
        errors = [*await self._sets.claim(deployment)]
        errors += await self._label_adopted(self._look_at(deployment))
        deployment, unmarked = await self._pass_on_marks(deployment, errors)
        if await self._roll_back(self._look_at(deployment)):
            return DONE  # the deployment has changed: what follows is another pass's
        errors += await self._hand_over(deployment)
        snapshot, updates = self._look_closely(deployment)
        decision, turn = self._pools.decide(snapshot, self._clock.now())
        if unmarked or (updates is not None and updates.is_to_be_recorded()):
            decision = decision.without_reductions(snapshot)
        with self._pools.claiming(snapshot, decision) as writes:  # no await since it was decided
            created = decision.create is not None
            if decision.create is not None:
                await self._creation.create(snapshot, decision.create)
            writes.errors += await self._change_sets(snapshot, decision, updates)
            snapshot = self._look_at(await self._number(self._look_at(deployment), errors))
            now, limits = self._clock.now(), self._limits.in_deployment(snapshot.deployment)
            updates = self._updates_of(snapshot)
            status = status_after(
                snapshot,
                decision,
                now,
                created=created,
                turn=turn,
                limits=limits,
                orphans=self._sets.orphaned(snapshot),
                remark=remark_on(updates) if updates is not None else "",
            )
            if not created:  # the old sets say first that their nodes are tainted: the next pass
                writes.errors += await self._mark_nodes(snapshot, status, updates, decision)
        errors += writes.errors
        errors += await self._clean_up(snapshot, status)
        if await self._writer.write_status(snapshot.deployment, status):
            self._telling.news(snapshot.deployment, status)
            if decision.refusal:
                self._telling.warn(snapshot.deployment, REASON_NO_TARGET_CLUSTER, decision.refusal)
        raise_together(f"machine deployment {deployment.metadata.key}", errors)
        if turn is not None and turn.waits:
            return Outcome(turn.again_in, "what others may have written is settled then")
        return self._look_again(snapshot, status) if decision.rolling else DONE

    def _look_at(self, deployment: MachineDeployment) -> DeploymentSnapshot:
        sets = self._sets.owned(deployment)
        machines = {s.metadata.uid: self._sets.machines_of(s) for s in sets}
        return DeploymentSnapshot.of(deployment, sets, machines)

    def _look_again(self, snapshot: DeploymentSnapshot, status: MachineDeploymentStatus) -> Outcome:
        deadline, judged = look_again_at(snapshot.deployment, status), snapshot.with_status(status)
        rolled_back_at = due_at(judged)
        now = self._clock.now()
        return earliest(
            Outcome.at(deadline, now, "the progress deadline is then"),
            Outcome.at(rolled_back_at, now, "a rollout that still fails then is rolled back"),
        )

    # ---- steps -----------------------------------------------------------------------------------

    async def _label_adopted(self, snapshot: DeploymentSnapshot) -> list[KubeError]:
        """Take adopted sets one step closer to being told apart."""
        errors: list[KubeError] = []
        for machine_set in snapshot.sets:
            step = labelling(machine_set, snapshot.machines[machine_set.metadata.uid])
            if step is None or machine_set.metadata.deletion_timestamp is not None:
                continue
            pairs = ((machine, step.of_a_machine) for machine in step.machines)
            errors += await self._sets.patch_machines(pairs)
            if step.change is not None:
                errors += await self._sets.try_patch(machine_set, step.change)
        return errors

    async def _pass_on_marks(
        self, deployment: MachineDeployment, errors: list[KubeError]
    ) -> tuple[MachineDeployment, bool]:
        """Mark the machines that the autoscaler wants gone, then take care of its list.

        Tell also whether a machine could not be marked: its set, if it shrank now, would take
        another one.
        """
        sets = self._sets.owned(deployment)
        find = self._sets.finder_among(sets)
        marks = scale_down_marks(
            deployment, find, self._clock.now(), changed_at=time_of_change(sets)
        )
        refusals = await self._sets.patch_machines(marks.machines)
        errors += refusals
        if marks.change is not None:
            deployment = await self._note(deployment, marks.change, errors)
        return deployment, bool(refusals)

    async def _hand_over(self, deployment: MachineDeployment) -> list[KubeError]:
        """Let machines that are updated in place change their sets."""
        errors = await self._unpin(deployment)
        updates = self._updates_of(self._look_at(deployment))
        if updates is not None and self._mover is not None:
            errors += await self._mover.move(updates)
        return errors

    async def _unpin(
        self, deployment: MachineDeployment, *, resized: AbstractSet[str] = frozenset()
    ) -> list[KubeError]:
        """Take the mark off machines that came into sets which account for them by now."""
        changes = unpinned(self._look_at(deployment), resized=resized)
        return [*await self._sets.patch_machines(changes)]

    def _look_closely(
        self, deployment: MachineDeployment
    ) -> tuple[DeploymentSnapshot, UpdateView | None]:
        """Look at Nodes, too, where machines are updated in place."""
        snapshot = self._look_at(deployment)
        updates = self._updates_of(snapshot)
        return (snapshot, None) if updates is None else (updates.counted(), updates)

    def _updates_of(self, snapshot: DeploymentSnapshot) -> UpdateView | None:
        return self._mover.look(snapshot) if self._mover is not None else None

    async def _roll_back(self, snapshot: DeploymentSnapshot) -> bool:
        """Go back to an earlier template, asked for or not; tell whether that was done."""
        if snapshot.deployment.spec.paused:
            return False
        asked = rollback(snapshot.deployment, snapshot.sets)
        asked = asked or automatic_rollback(snapshot, self._clock.now())
        if asked is None:
            return False
        deployment = await self._writer.patch(snapshot.deployment, asked.change)
        self._events.event(MACHINE_DEPLOYMENTS, deployment, asked.kind, asked.event, asked.note)
        return True

    async def _change_sets(
        self, snapshot: DeploymentSnapshot, decision: Decision, updates: UpdateView | None
    ) -> list[KubeError]:
        """Write what the sets should be. A refusal ends it: the next pass decides anew."""
        if decision.create is not None:
            return []
        marking = (
            self._nodes is not None
            and snapshot.taints_old_nodes
            and not snapshot.deployment.spec.paused
        )
        try:
            now = self._clock.now()
            for present, wanted in wanted_sets(
                snapshot, decision, now, marking=marking, updates=updates
            ):
                await self._sets.change(snapshot.deployment, present, wanted)
        except KubeError as error:
            return [error]
        return await self._unpin(snapshot.deployment, resized=decision.settling)

    async def _number(
        self, snapshot: DeploymentSnapshot, errors: list[KubeError]
    ) -> MachineDeployment:
        """Let the deployment bear its new set's revision."""
        deployment, new = snapshot.deployment, snapshot.new
        revision = new.metadata.annotations.get(ANNOTATION_REVISION) if new else None
        if revision in (None, deployment.metadata.annotations.get(ANNOTATION_REVISION)):
            return deployment
        change: JSONObject = {"metadata": {"annotations": {ANNOTATION_REVISION: revision}}}
        return await self._note(deployment, change, errors)

    async def _mark_nodes(
        self,
        snapshot: DeploymentSnapshot,
        status: MachineDeploymentStatus,
        updates: UpdateView | None,
        decision: Decision,
    ) -> list[KubeError]:
        if self._nodes is None:
            return []
        marked = self._nodes.mark(snapshot, status, updates=updates, select=decision.select)
        errors = [*await marked]
        if snapshot.deployment.spec.paused:
            return errors
        if snapshot.new is not None and has_tainted_nodes(snapshot.new) and not errors:
            change = set_change(snapshot.new, without_taint_annotation(snapshot.new))
            errors += await self._sets.try_patch(snapshot.new, change)
        return errors

    async def _clean_up(
        self, snapshot: DeploymentSnapshot, status: MachineDeploymentStatus
    ) -> list[KubeError]:
        """Delete old sets beyond the history limit, when none of them can be needed just now."""
        spec = snapshot.deployment.spec
        if not (spec.paused or is_complete(status, snapshot.deployment)):
            return []
        old = beyond_history(snapshot.old, spec.revision_history_limit)
        return [*await self._sets.delete(old, unchanged=True)]

    # ---- deployments that end, or make no sense --------------------------------------------------

    async def _retire(self, deployment: MachineDeployment) -> Outcome:
        """Delete the sets, then let the deployment go; its spec need not be valid for that."""
        snapshot = self._look_at(deployment)
        match ending_of(deployment.metadata, MACHINE_FINALIZER, snapshot.sets):
            case Ending.OVER:
                pass
            case Ending.LET_GO:
                await self._writer.let_go(deployment, MACHINE_FINALIZER)
            case Ending.DELETE_CHILDREN:
                await self._delete_sets(snapshot)
        return DONE

    async def _delete_sets(self, snapshot: DeploymentSnapshot) -> None:
        """Delete the sets of a deployment that is being deleted, and show what is left."""
        deployment = snapshot.deployment
        errors = await self._sets.delete(snapshot.sets, unchanged=True)
        snapshot = self._look_at(deployment)
        valid = not self._complaint_about(deployment)
        bounds = bounds_of(deployment.spec) if valid else Bounds(max(0, deployment.spec.replicas))
        now = self._clock.now()
        await self._writer.write_status(
            deployment, counted_status(deployment, snapshot.sets, snapshot.new, bounds, now)
        )
        raise_together(f"machine deployment {deployment.metadata.key}", errors)

    def _complaint_about(self, deployment: MachineDeployment) -> str:
        return describe(validate_machine_deployment(deployment, max_replicas=self._max_replicas))

    async def _note(
        self, deployment: MachineDeployment, change: JSONObject, errors: list[KubeError]
    ) -> MachineDeployment:
        """Write on the deployment what no other step needs. Raises Conflict and NotFound: it has
        changed or gone, and the pass is over."""
        try:
            return await self._writer.patch(deployment, change)
        except (Conflict, NotFound):
            raise
        except KubeError as error:
            errors.append(error)
            return deployment
