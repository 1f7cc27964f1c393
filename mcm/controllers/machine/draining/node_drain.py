"""One pass of a machine's drain: mark the Node, ask its pods to leave, say when to look again."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from random import Random
from typing import Final, final

from mcm.api.core import NODES, Node, Pod
from mcm.api.machine import Machine
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.controllers.indexes import pods_on
from mcm.controllers.machine.backoff import MachineBackoff, Pace
from mcm.controllers.machine.draining.mark import mark_patch
from mcm.controllers.machine.draining.request import (
    DrainAnswer,
    Drained,
    DrainRequest,
    Unfinished,
    mode_at,
)
from mcm.controllers.machine.draining.trouble import listed, trouble_of
from mcm.controllers.machine.memory import Drain
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.drain import (
    Attempts,
    BudgetView,
    Force,
    Mode,
    Plan,
    Refusal,
    Snapshot,
    arrange,
    execute,
    plan,
    view_for,
)
from mcm.events import EventType

CIRCUMSTANCES: Final = "drain"
"""Under which failures to mark the Node are counted."""


@final
class NodeDrain:
    """Drains Nodes, a pass at a time; never waits for a pod.

    ``drains`` holds what is remembered of drains under way, by machine UID.
    """

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        *,
        backoff: MachineBackoff,
        drains: MutableMapping[str, Drain],
        random: Random,
        metrics: MachineMetrics,
    ) -> None:
        self.control = control
        self.target = target
        self.backoff = backoff
        self.drains = drains
        self.random = random
        self.metrics = metrics

    async def drain(self, machine: Machine, request: DrainRequest) -> DrainAnswer:
        """Do one pass over the Node that ``machine`` names. Raises Conflict if the Node changed."""
        if obstacle := self.target.owners.find(machine).obstacle:
            return Unfinished(None, "the node is not certainly the machine's own", obstacle)
        return await _Pass(self, machine, request).run()

    def abandon(self, machine: Machine) -> None:
        """Nobody asks for this drain any more."""
        self.drains.pop(machine.metadata.uid, None)


@final
class _Pass:
    """One pass over one Node. Everything it looks at is of the moment it began."""

    def __init__(self, drain: NodeDrain, machine: Machine, request: DrainRequest) -> None:
        self._drain = drain
        self._control = drain.control
        self._target = drain.target
        self._machine = machine
        self._request = request
        self._settings = drain.control.settings_of(machine)
        self._node = drain.target.owners.own_node(machine)
        self._mode: Mode = mode_at(drain.control.now(), request, machine, self._node)

    async def run(self) -> DrainAnswer:
        by_all_means = self._mode.forced and self._request.tolerant
        if not by_all_means and (wait := self._wait()):
            return Unfinished(wait, "an attempt has failed")
        try:
            await self._mark()
        except Conflict:
            raise
        except KubeError as error:
            if not by_all_means:
                return self._failed("the node could not be marked", str(error))
        return await (self._force() if self._mode.forced else self._evict())

    # ---- the node, and failures ----------------------------------------------------------------

    async def _mark(self) -> None:
        node: Node | None = self._node
        patch = mark_patch(self._request.mark, node) if node else None
        if node is None or patch is None:
            return
        try:
            await self._target.writer.patch(
                NODES, node.metadata.name, patch.body, patch_type=patch.kind
            )
        except NotFound:
            self._node = None

    def _wait(self) -> float:
        uid, now = self._machine.metadata.uid, self._control.clock.monotonic()
        return self._drain.backoff.wait(uid, now, circumstances=CIRCUMSTANCES)

    def _failed(self, reason: str, trouble: str) -> Unfinished:
        uid, now = self._machine.metadata.uid, self._control.clock.monotonic()
        backoff = self._drain.backoff
        wait = backoff.failed(uid, Pace.TRANSIENT, now, circumstances=CIRCUMSTANCES)
        return Unfinished(wait, reason, trouble)

    # ---- by force ------------------------------------------------------------------------------

    async def _force(self) -> DrainAnswer:
        """Delete what is there, and wait for nothing."""
        attempts = Attempts(self._drain.random)
        refusals = await self._execute(plan(self._snapshot(attempts)), attempts)
        note = f"Pods are deleted by force: {self._mode.force.value}"
        self._control.tell(self._machine, EventType.WARNING, "ForceDrained", note)
        refused = listed([str(refusal) for refusal in refusals])
        if refused and not self._request.tolerant:
            return self._failed("pods could not be deleted", refused)
        return self._done(Drained(self._mode.force, refused))

    # ---- by eviction ---------------------------------------------------------------------------

    async def _evict(self) -> DrainAnswer:
        record = self._record()
        snapshot = self._snapshot(record.attempts)
        step = plan(snapshot)
        # Each round asks at least one pod that was not asked before in this pass.
        for _ in range(len(snapshot.arrangement.taken) + 1):
            if not step.actions:
                break
            await self._execute(step, record.attempts)
            snapshot = self._snapshot(record.attempts)
            step = plan(snapshot)
        if step.finished:
            return self._done(Drained(Force.NONE))
        return Unfinished(step.look_again, "draining", self._tell_trouble(record, snapshot))

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
            arrangement=arrange(
                pods_on(self._target.pods, self._machine.node_name),
                start=self._request.start,
                settings=self._settings.drain_waves,
            ),
            mode=self._mode,
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
            step.actions,
            self._target.client,
            attempts,
            budgets=self._budgets,
            monotonic=self._control.clock.monotonic,
        )

    def _tell_trouble(self, record: Drain, snapshot: Snapshot) -> str:
        trouble = trouble_of(snapshot)
        record.held_back_in = trouble.held_back_in
        for note in (*trouble.lasting, *trouble.patient):
            self._control.tell(self._machine, EventType.WARNING, "DrainBlocked", note)
        return listed(trouble.lasting)

    def _done(self, answer: Drained) -> Drained:
        self._drain.metrics.drained(self._machine, self._request.start, self._control.now())
        self._drain.abandon(self._machine)
        return answer
