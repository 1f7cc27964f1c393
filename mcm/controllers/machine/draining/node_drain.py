"""One pass of a machine's drain: mark the Node, have its pods asked, keep the record, tell."""

from __future__ import annotations

from collections.abc import MutableMapping
from random import Random
from typing import Final, final

from mcm.api.core import NODES
from mcm.api.machine import Machine
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.controllers.machine.backoff import MachineBackoff, Pace
from mcm.controllers.machine.draining.condition import DrainShown, withdrawn
from mcm.controllers.machine.draining.mark import mark_patch
from mcm.controllers.machine.draining.record_on_machine import RecordOnMachine
from mcm.controllers.machine.draining.request import (
    DrainAnswer,
    Drained,
    MachineDrain,
    Unfinished,
    mode_at,
)
from mcm.controllers.machine.draining.telling import DrainTelling
from mcm.controllers.machine.draining.trouble import lasting_trouble
from mcm.controllers.machine.draining.volume_ids import VolumeIds
from mcm.controllers.machine.draining.wishes import wish_on_machine
from mcm.controllers.machine.drains_under_way import Drain
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.drain.engine import DrainEngine
from mcm.drain.memory import DrainMemory
from mcm.drain.record import Record
from mcm.drain.request import DrainRequest, Purpose
from mcm.drain.result import Done, Quiet, TimedOut, Working
from mcm.events import EventType

CIRCUMSTANCES: Final = "drain"
"""Under which failures to mark the Node are counted."""


@final
class NodeDrain:
    """Drains the Nodes of machines, a pass at a time; never waits for a pod.

    ``drains`` holds what is remembered of drains under way, by machine UID.
    """

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        engine: DrainEngine,
        *,
        volume_ids: VolumeIds,
        backoff: MachineBackoff,
        drains: MutableMapping[str, Drain],
        random: Random,
        metrics: MachineMetrics,
        telling: DrainTelling,
    ) -> None:
        self._control = control
        self._target = target
        self._engine = engine
        self._volume_ids = volume_ids
        self._record = RecordOnMachine(control)
        self._backoff = backoff
        self._drains = drains
        self._random = random
        self._metrics = metrics
        self._telling = telling

    async def drain(self, machine: Machine, wanted: MachineDrain) -> DrainAnswer:
        """Do one pass over the Node that ``machine`` names. Raises Conflict if the Node or the
        machine changed."""
        if obstacle := self._target.owners.find(machine).obstacle:
            reason = "the node is not certainly the machine's own"
            return Unfinished(machine, None, reason, obstacle)
        if (failure := await self._marked(machine, wanted)) is not None:
            return failure
        request = wanted.request
        drain = self._drain_of(machine, request)
        self._begin(drain.memory, machine)
        record = self._record.of(machine, request)
        if not mode_at(self._control.now(), request, self._target.nodes.get(request.node)).forced:
            unnamed = self._engine.observation.volumes_to_name(request.node)
            await self._volume_ids.learn(machine, unnamed)
        result, record = await self._engine.pass_over(request, record, drain.memory)
        for remark in drain.memory.take_remarks():
            self._control.tell(machine, EventType.WARNING, "DrainRemark", remark)
        if isinstance(result, Done | TimedOut):
            return await self._done(machine, wanted, result, drain, record)
        machine = await self._record.keep(machine, request, record)
        told = self._telling.under_way(machine, request, result, drain, record)
        return self._unfinished(machine, result, told)

    def abandon(self, machine: Machine) -> None:
        """Nobody asks for this drain any more. Its record counts for no other one."""
        self._drains.pop(machine.metadata.uid, None)

    async def withdraw(self, machine: Machine) -> Machine:
        """The same, and have a machine that lives on say nothing of it any more."""
        self.abandon(machine)
        machine = await self._record.remove(machine)
        return await self._control.write_status(machine, withdrawn(machine.status))

    def _begin(self, memory: DrainMemory, machine: Machine) -> None:
        """From now on a change of what people want ends the pass; so does one that came while
        this one was on its way here."""
        memory.interruption.begin()
        current = self._control.machines.get(machine.metadata.key)
        if current is None or wish_on_machine(current) != wish_on_machine(machine):
            memory.interruption.call()

    def _drain_of(self, machine: Machine, request: DrainRequest) -> Drain:
        uid = machine.metadata.uid
        if uid not in self._drains:
            memory, watch = DrainMemory(self._random), self._telling.begun(machine, request)
            self._drains[uid] = Drain(machine.metadata.key, memory, watch)
        return self._drains[uid]

    # ---- the mark, and failures ------------------------------------------------------------------

    async def _marked(self, machine: Machine, wanted: MachineDrain) -> Unfinished | None:
        """Mark the Node. None: go on, as a forced and tolerant drain does in any case."""
        node = self._target.owners.own_node(machine)
        mode = mode_at(self._control.now(), wanted.request, node)
        by_all_means = mode.forced and wanted.tolerant
        if not by_all_means and (wait := self._wait(machine)):
            return Unfinished(machine, wait, "an attempt has failed")
        patch = mark_patch(wanted.mark, node) if node else None
        if node is None or patch is None:
            return None
        try:
            await self._target.writer.patch(
                NODES, node.metadata.name, patch.body, patch_type=patch.kind
            )
        except NotFound:
            return None
        except Conflict:
            raise
        except KubeError as error:
            if not by_all_means:
                return self._failed(machine, "the node could not be marked", str(error))
        return None

    def _wait(self, machine: Machine) -> float:
        uid, now = machine.metadata.uid, self._control.clock.monotonic()
        return self._backoff.wait(uid, now, circumstances=CIRCUMSTANCES)

    def _failed(self, machine: Machine, reason: str, trouble: str) -> Unfinished:
        uid, now = machine.metadata.uid, self._control.clock.monotonic()
        wait = self._backoff.failed(uid, Pace.TRANSIENT, now, circumstances=CIRCUMSTANCES)
        return Unfinished(machine, wait, reason, trouble)

    # ---- what came of it -------------------------------------------------------------------------

    async def _done(
        self,
        machine: Machine,
        wanted: MachineDrain,
        result: Done | TimedOut,
        drain: Drain,
        record: Record,
    ) -> DrainAnswer:
        refused = result.refusals if isinstance(result, Done) else ""
        mode = mode_at(self._control.now(), wanted.request, self._target.owners.own_node(machine))
        shown = self._telling.over(
            machine, wanted.request, result, drain, record, at_once=mode.kubelet_dead
        )
        if refused and not wanted.tolerant:
            return self._failed(machine, "pods could not be deleted", refused)
        if wanted.request.purpose is not Purpose.DELETION:
            machine = await self._record.remove(machine)
        self._metrics.drained(machine, wanted.request.start, self._control.now())
        self.abandon(machine)
        return Drained(machine, result.force, refused, shown)

    def _unfinished(
        self, machine: Machine, result: Working | Quiet, told: DrainShown
    ) -> Unfinished:
        waits = [wait for wait in (result.look_again, told.again) if wait is not None]
        again = min(waits, default=None)
        reason, trouble = "draining", ""
        if isinstance(result, Quiet):
            reason = "a pod may be on its way"
        elif result.blind:
            reason, trouble = (
                "cannot observe",
                f"cannot observe the pods on the node: {result.blind}",
            )
        else:
            trouble = lasting_trouble(result.pods)
        return Unfinished(machine, again, reason, trouble, result, told.status)
