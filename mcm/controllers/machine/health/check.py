"""Checking a machine's health: what is decided is written, told and counted."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, final

from mcm.api.core import Node
from mcm.api.machine import Machine, MachinePhase, MachineStatus, OperationType
from mcm.api.names import STATUS_FALSE
from mcm.client.errors import KubeError
from mcm.controllers.machine import status
from mcm.controllers.machine.creation.bootstrap_token import BootstrapTokens
from mcm.controllers.machine.creation.deadline import CreationTime
from mcm.controllers.machine.creation.join_duration import record_join_duration
from mcm.controllers.machine.health import critical_components
from mcm.controllers.machine.health.decision import HealthDecision, decide
from mcm.controllers.machine.health.failure_permit import Permit
from mcm.controllers.machine.health.giving_up import GivingUp
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.node.template_sync import NodeTemplateSync
from mcm.controllers.machine.own_conditions import OwnCondition, with_own, without_own
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.reachability import Reachability
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType

_ROUNDS = 4
"""A decision can lead to the next one (joined, then timed); more than a few in a row is a fault."""

PATIENCE: Final = 60.0
"""Seconds for which a Node that cannot be written, though nobody refuses, holds its machine."""


@final
class HealthCheck:
    """Judges machines that have a Node's name and a phase."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        *,
        giving_up: GivingUp,
        reachability: Callable[[], Reachability],
        nodes: NodeTemplateSync,
        held_since: MutableMapping[str, float],
        time: CreationTime,
        tokens: BootstrapTokens,
        metrics: MachineMetrics,
    ) -> None:
        self._control = control
        self._target = target
        self._giving_up = giving_up
        self._reachability = reachability
        self._nodes = nodes
        self._held_since = held_since
        self._time = time
        self._tokens = tokens
        self._metrics = metrics

    async def check(self, machine: Machine) -> Outcome:
        """Do what the Node's conditions call for. Raises Conflict if the machine changed since."""
        found = self._target.owners.find(machine)
        if found.contested:
            return DONE  # whose conditions these are nobody knows; it says so itself
        node = found.node
        for _ in range(_ROUNDS):
            decision = self._decide(machine, node)
            with self._permit_for(machine, decision) as permit:
                if decision.phase is MachinePhase.FAILED:
                    node, decision = await self._confirmed(machine)
                if not decision.changes_something:
                    return Outcome(after=decision.after, reason="health timeout")
                if decision.phase is MachinePhase.RUNNING:
                    machine = await self._admit(machine)
                machine = await self._apply(machine, decision)
                permit.used = decision.gives_up
        raise AssertionError(f"the health of {machine.metadata.key} does not settle")

    def _permit_for(
        self, machine: Machine, decision: HealthDecision
    ) -> AbstractContextManager[Permit]:
        """While one machine of a deployment is about to be given up, its Node is not asked for on
        behalf of all others that wait for the same."""
        return self._giving_up.holding(machine) if decision.gives_up else nullcontext(Permit())

    async def _confirmed(self, machine: Machine) -> tuple[Node | None, HealthDecision]:
        """Decide on what the server says now, as this may end in destruction."""
        node = await self._target.live_node(machine.node_name)
        if node is not None:
            ownership = self._target.owners.of(node, asking=machine)
            if ownership.contested:
                return node, HealthDecision()
            node = node if ownership.is_of(machine) else None
        return node, self._decide(machine, node)

    async def _admit(self, machine: Machine) -> Machine:
        """Make the Node as it is to be before anything is told to run there.

        What a server refuses is no obstacle, and what else fails is one for a short while only: to
        be late would be the machine's end. One that ran before has pods already.
        """
        if machine.metadata.faults:
            return machine  # what could not be read must not be taken off the Node
        uid, now = machine.metadata.uid, self._control.clock.monotonic()
        try:
            await self._nodes.sync(machine, admitted=True)
        except KubeError as error:
            if machine.phase != MachinePhase.PENDING:
                return machine
            if now - self._held_since.setdefault(uid, now) < PATIENCE:
                raise
            note = f"Its node could not be written before: {error}"
            self._control.tell(machine, EventType.WARNING, "NodeNotPrepared", note)
        self._held_since.pop(uid, None)
        return self._control.current(machine) or machine

    def _decide(self, machine: Machine, node: Node | None) -> HealthDecision:
        return decide(
            machine,
            node,
            self._control.settings_of(machine),
            self._control.now(),
            born=self._time.born(machine),
            may_fail=lambda: self._giving_up.may_fail(machine),
            servers=self._reachability(),
            verdict=self._giving_up.verdict(machine),
        )

    async def _apply(self, machine: Machine, decision: HealthDecision) -> Machine:
        wanted = self._wanted(machine, decision)
        if _joins(decision):
            # Before that is written: a process that ends in between leaves no token behind.
            await self._tokens.revoke(machine)
        if decision.gives_up:
            written = await self._give_up(machine, wanted)
        else:
            written = await self._control.write_status(machine, wanted)
        self._tell(machine, written, decision)
        if _joins(decision):
            written = await record_join_duration(self._control, written)
        return written

    async def _give_up(self, machine: Machine, wanted: MachineStatus) -> Machine:
        """Write the turn to Failed; with a permit, so that no other of the group may decide on the
        same."""
        try:
            return await self._control.write_status(machine, wanted)
        except KubeError:
            # It may have been applied all the same. The others must know before they go on.
            with suppress(KubeError):
                await self._control.reread(machine)
            raise

    def _wanted(self, machine: Machine, decision: HealthDecision) -> MachineStatus:
        now, wanted = self._control.now(), machine.status
        if decision.conditions is not None:
            wanted = status.with_conditions(wanted, decision.conditions)
        if decision.operation is not None:
            wanted = status.with_operation(wanted, decision.operation, now)
        if decision.phase is not None:
            wanted = status.with_phase(wanted, decision.phase, now)
        if decision.phase in (MachinePhase.RUNNING, MachinePhase.FAILED):
            wanted = without_own(wanted, OwnCondition.REPLACEABLE)
        if decision.components_awaited:
            wanted = critical_components.with_told(wanted, machine.node_name, now)
        elif decision.components_awaited is False or decision.phase is MachinePhase.RUNNING:
            wanted = critical_components.without_told(wanted)
        if (shown := decision.replaceable) is not None:
            wanted = with_own(
                wanted, OwnCondition.REPLACEABLE, shown.status, shown.reason, shown.message, now
            )
        return wanted

    def _tell(self, before: Machine, machine: Machine, decision: HealthDecision) -> None:
        """Let people and dashboards know."""
        if decision.replaceable is not None and decision.replaceable.status == STATUS_FALSE:
            note = f"not given up: {decision.replaceable.message}"
            self._control.tell(machine, EventType.WARNING, "ReplacementHeld", note)
        if decision.components_awaited:
            note = f"Waiting for critical components on node {machine.node_name}"
            self._control.tell(machine, EventType.NORMAL, "CriticalComponentsAwaited", note)
        if decision.phase is None or decision.operation is None:
            return
        control, note = self._control, decision.operation.description
        class_ = control.class_of(machine)
        match decision.phase:
            case MachinePhase.RUNNING if _joins(decision):
                control.tell(machine, EventType.NORMAL, "Joined", note)
                self._metrics.joined(machine, class_, control.now())
            case MachinePhase.RUNNING:
                control.tell(machine, EventType.NORMAL, "Rejoined", note)
            case MachinePhase.UNKNOWN:
                control.tell(machine, EventType.WARNING, "Unhealthy", note)
            case MachinePhase.FAILED:
                control.tell(machine, EventType.WARNING, "Failed", note)
                if before.phase == MachinePhase.PENDING:
                    self._metrics.failed_to_join(machine, class_)


def _joins(decision: HealthDecision) -> bool:
    """Tell whether the machine runs for the first time."""
    done = decision.operation
    return (
        decision.phase is MachinePhase.RUNNING
        and done is not None
        and done.type == OperationType.CREATE
    )
