"""Take the pods off a machine's Node: one pass of the drain, from its record to its next look."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import final

from mcm.api.core import NODES, Node, Pod
from mcm.api.machine import LastOperation, Machine
from mcm.api.names import LABEL_FORCE_DELETION
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.client.requests import PatchType
from mcm.controllers.indexes import pods_on
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.health.conditions import is_healthy
from mcm.controllers.machine.memory import Drain
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.own_conditions import of_node
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.runtime import Outcome
from mcm.drain import (
    Attempt,
    Attempts,
    BudgetView,
    Mode,
    Plan,
    Refusal,
    Snapshot,
    cordon_patch,
    execute,
    mode_of,
    plan,
    select,
    stuck,
    terminating_patch,
    view_for,
)
from mcm.events import EventType

_PATIENCE = 3
"""A pod refused so many times is worth an event; once or twice is how budgets work."""
_NAMED = 3


@final
class NodeDrain:
    """The step DRAIN. ``drains`` holds what is remembered of drains under way, by machine UID."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster | None,
        record: DeletionRecord,
        *,
        drains: MutableMapping[str, Drain],
        random: Random,
        metrics: MachineMetrics,
    ) -> None:
        self.control = control
        self.record = record
        self.drains = drains
        self.random = random
        self.metrics = metrics
        self._target = target

    async def drain(self, machine: Machine) -> StepResult:
        """Do one pass; return the machine with the next step's marker, or when to look again."""
        if self._target is None:
            return await self.record.proceed(machine, last_operation.no_target_cluster())
        if not machine.node_name:
            skipped = last_operation.drain_skipped()
            wanted = status.with_operation(machine.status, skipped, self.control.now())
            return await self.control.write_status(machine, wanted)
        work = _Pass(self, self._target, machine)
        if (again := await work.mark_node()) is not None:
            return again
        if work.mode.forced:
            return await work.force()
        return await work.evict()


@final
@dataclass(frozen=True, slots=True)
class _Trouble:
    """What keeps a gentle drain from going on."""

    lasting: tuple[str, ...]
    """For people to mend: shown on the machine."""
    patient: tuple[str, ...]
    """Likely to pass: shown in an event, once it takes long."""


@final
class _Pass:
    """One pass over one node. Everything it looks at is of the moment it began."""

    def __init__(self, drain: NodeDrain, target: TargetCluster, machine: Machine) -> None:
        self._drain = drain
        self._control = drain.control
        self._target = target
        self._machine = machine
        self._settings = drain.control.settings_of(machine)
        self._node = target.nodes.get(machine.node_name)
        self.mode = self._mode(drain.control.now())

    def _mode(self, now: datetime) -> Mode:
        machine, node = self._machine, self._node
        return mode_of(
            node.status.conditions if node is not None else of_node(machine.status.conditions),
            force_label=machine.metadata.labels.get(LABEL_FORCE_DELETION, ""),
            deadline=(machine.metadata.deletion_timestamp or now) + self._settings.drain_timeout,
            now=now,
        )

    # ---- the node ------------------------------------------------------------------------------

    async def mark_node(self) -> Outcome | None:
        """Say on the Node that it goes, and keep new pods away. None: go on."""
        if self._node is None:
            return None
        wait = self._drain.record.wait_for(self._machine, "drain")
        if wait and not self.mode.forced:
            return Outcome(after=wait, reason="the node could not be marked")
        try:
            await self._say_terminating(self._node)
        except Conflict:
            raise
        except KubeError as error:
            if not self.mode.forced:
                return await self._not_marked(last_operation.node_conditions_failed(str(error)))
        try:
            await self._cordon(self._node)
        except Conflict:
            raise
        except KubeError as error:
            if not self.mode.forced:
                return await self._not_marked(last_operation.drain_failed(str(error)))
        return None

    async def _say_terminating(self, node: Node) -> None:
        conditions = node.status.conditions
        healthy = is_healthy(conditions, self._settings.node_conditions)
        patch = terminating_patch(node, self._control.now(), unhealthy=not healthy)
        if patch is None:
            return
        try:
            await self._target.writer.patch(
                NODES,
                node.metadata.name,
                patch,
                subresource="status",
                patch_type=PatchType.STRATEGIC,
            )
        except NotFound:
            self._node = None

    async def _cordon(self, node: Node) -> None:
        patch = cordon_patch(node)
        if patch is None or self._node is None:
            return
        try:
            await self._target.writer.patch(NODES, node.metadata.name, patch)
        except NotFound:
            self._node = None

    async def _not_marked(self, failure: LastOperation) -> Outcome:
        await self._drain.record.show(self._machine, failure)
        wait = self._drain.record.failed(self._machine, Pace.TRANSIENT, "drain")
        return Outcome(after=wait, reason="the node could not be marked")

    # ---- by force ------------------------------------------------------------------------------

    async def force(self) -> Machine:
        """Delete what is there, wait for nothing, go on whatever came of it."""
        attempts = Attempts(self._drain.random)
        refusals = await self._execute(plan(self._snapshot(attempts)), attempts)
        if refusals:
            done = last_operation.drain_failed_but_forced(_listed([str(r) for r in refusals]))
        else:
            done = last_operation.force_drained()
        note = f"Pods are deleted by force: {self.mode.force.value}"
        self._control.tell(self._machine, EventType.WARNING, "ForceDrained", note)
        return await self._done(done)

    # ---- by eviction ---------------------------------------------------------------------------

    async def evict(self) -> StepResult:
        record = self._record()
        snapshot = self._snapshot(record.attempts)
        step = plan(snapshot)
        # Each round asks at least one pod that was not asked before in this pass.
        for _ in range(len(snapshot.selection.serial) + 1):
            if not step.actions:
                break
            await self._execute(step, record.attempts)
            snapshot = self._snapshot(record.attempts)
            step = plan(snapshot)
        if step.finished:
            return await self._done(last_operation.drained())
        await self._show_trouble(record, snapshot)
        return Outcome(after=step.look_again, reason="draining")

    def _record(self) -> Drain:
        drains, uid = self._drain.drains, self._machine.metadata.uid
        if uid not in drains:
            drains[uid] = Drain(self._machine.metadata.key, Attempts(self._drain.random))
        record = drains[uid]
        pods = pods_on(self._target.pods, self._machine.node_name)
        record.attempts.keep_only({pod.metadata.uid for pod in pods})
        return record

    def _snapshot(self, attempts: Attempts) -> Snapshot:
        return Snapshot(
            selection=select(pods_on(self._target.pods, self._machine.node_name)),
            mode=self.mode,
            attempts=attempts.view(),
            budgets=self._budgets,
            retries=self._settings.evict_retries,
            now=self._control.now(),
            monotonic=self._control.clock.monotonic(),
        )

    def _budgets(self, pod: Pod) -> BudgetView:
        return view_for(pod, self._target.budgets.list(pod.metadata.namespace))

    async def _execute(self, step: Plan, attempts: Attempts) -> Sequence[Refusal]:
        return await execute(
            step,
            self._target.client,
            attempts,
            budgets=self._budgets,
            monotonic=self._control.clock.monotonic,
        )

    async def _done(self, done: LastOperation) -> Machine:
        self._drain.metrics.drained(self._machine, self._control.now())
        self._drain.drains.pop(self._machine.metadata.uid, None)
        return await self._drain.record.proceed(self._machine, done)

    async def _show_trouble(self, record: Drain, snapshot: Snapshot) -> None:
        held = [
            (pod, snapshot.attempts[pod.metadata.uid])
            for pod in snapshot.selection.taken
            if pod.metadata.uid in snapshot.attempts
            and snapshot.attempts[pod.metadata.uid].accepted_at is None
        ]
        record.held_back_in = frozenset(pod.metadata.namespace for pod, _ in held)
        trouble = _trouble(held, stuck(snapshot))
        for note in (*trouble.lasting, *trouble.patient):
            self._control.tell(self._machine, EventType.WARNING, "DrainBlocked", note)
        if trouble.lasting:
            failure = last_operation.drain_failed(_listed(trouble.lasting))
            await self._drain.record.show(self._machine, failure)


def _trouble(held: Sequence[tuple[Pod, Attempt]], stuck_pods: Sequence[Pod]) -> _Trouble:
    lasting = tuple(
        f"pod {pod.metadata.key}: {attempt.refusal}" for pod, attempt in held if attempt.obstructed
    )
    patient = tuple(
        f"pod {pod.metadata.key}: {attempt.refusal}"
        for pod, attempt in held
        if not attempt.obstructed and attempt.tries >= _PATIENCE
    )
    late = tuple(f"pod {p.metadata.key}: its grace period is over" for p in stuck_pods)
    return _Trouble(lasting, (*patient, *late))


def _listed(texts: Sequence[str]) -> str:
    """Join the first few in a stable order, and count the rest."""
    ordered = sorted(texts)
    more = f"; and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    return "; ".join(ordered[:_NAMED]) + more
