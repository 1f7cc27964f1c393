"""Keeping a machine as long as it is asked for: the writes to it and its Node, in their order."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple, final

from mcm.api.core import NODES, Node
from mcm.api.machine import Machine, MachinePhase, MachineStatus
from mcm.api.meta import JSONObject
from mcm.api.names import STATUS_FALSE
from mcm.api.timestamps import rfc3339, whole_seconds
from mcm.client.errors import ApiError, Conflict, KubeError, NotFound
from mcm.client.requests import PatchType
from mcm.controllers.machine import status
from mcm.controllers.machine.draining.condition import carried_over, withdrawn
from mcm.controllers.machine.draining.mark import Mark
from mcm.controllers.machine.draining.node_drain import NodeDrain
from mcm.controllers.machine.draining.request import (
    MachineDrain,
    Unfinished,
    of_a_node_that_stays,
)
from mcm.controllers.machine.own_conditions import OwnCondition, find_own, with_own, without_own
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.machine.preservation import node_condition, node_marks
from mcm.controllers.machine.preservation.decision import (
    Decision,
    Verdict,
    annotations_to_write,
    decide,
)
from mcm.controllers.machine.preservation.node_condition import Wording
from mcm.controllers.node_ownership import is_managed
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.replicas.deletion_order import preserved_until
from mcm.controllers.runtime import DONE, Outcome
from mcm.drain.request import Purpose
from mcm.events import EventType

LONGEST_SLEEP = timedelta(minutes=10)
"""How late the end can be noticed after somebody has set the clock forward."""


@final
class Preservation:
    """Keeps machines. ``target`` and ``drain`` are None where machines join no cluster."""

    def __init__(
        self, control: ControlCluster, target: TargetCluster | None, drain: NodeDrain | None
    ) -> None:
        self.control = control
        self.target = target
        self.drain = drain

    async def follow(self, machine: Machine) -> Outcome:
        """Do what is asked for on the machine or its Node. Raises Conflict if either changed."""
        node = self._node_of(machine)
        work = _Pass(self, machine, node)
        if work.decision.verdict is Verdict.END and node is None and machine.node_name:
            # The Node's word counts no more, and a set may delete the machine: be sure.
            work = _Pass(self, machine, await self._live_node_of(machine))
        match work.decision.verdict:
            case Verdict.KEEP:
                return await work.keep()
            case Verdict.END | Verdict.END_AND_FORGET:
                return await work.end()
            case Verdict.LEAVE | Verdict.NONE:
                return await work.leave()

    def _node_of(self, machine: Machine) -> Node | None:
        if self.target is None or not machine.node_name:
            return None
        return self.target.nodes.get(machine.node_name)

    async def _live_node_of(self, machine: Machine) -> Node | None:
        return None if self.target is None else await self.target.live_node(machine.node_name)


class _Trouble(NamedTuple):
    """What is wrong, for the machine's own condition."""

    reason: str
    text: str


_NONE: Final = _Trouble("", "")


@final
class _Pass:
    """One pass over one machine; it goes on from the answers to its own writes."""

    def __init__(self, step: Preservation, machine: Machine, node: Node | None) -> None:
        self._step = step
        self._control = step.control
        self._now = step.control.now()
        self._machine = machine
        foreign = node is not None and not self._is_own(node)
        self.decision: Decision = decide(machine, node, self._now, ambiguous=foreign)
        self._node = None if foreign else node
        self._shown: MachineStatus | None = None
        """With what there is to say of the drain; None: this pass has nothing to do with one."""

    def _is_own(self, node: Node) -> bool:
        target = self._step.target
        if target is None or not is_managed(node):
            return False
        return target.owners.of(node, asking=self._machine).is_of(self._machine)

    # ---- what may become of a machine ----------------------------------------------------------

    async def keep(self) -> Outcome:
        """Stamp the end, mark the Node, drain it if the machine failed, say so."""
        await self._stamp()
        again, trouble = DONE, _NONE
        try:
            if self._node is not None:
                again, trouble = await self._mark(self._node)
        except NotFound:
            self._node = None  # it went under our hands; its machine goes with it
        except Conflict:
            raise
        except ApiError as error:
            trouble = _Trouble("NodeNotMarked", f"the node cannot be marked: {error}")
            await self._conclude(self._machine.status, trouble)
            raise
        await self._hand_over()
        await self._conclude(self._machine.status, trouble)
        return again.sooner(self._until_the_end())

    async def end(self) -> Outcome:
        """Take away what is ours; the record that the machine is kept goes last."""
        refused = await self._unmark()
        await self._hand_over()
        trouble = _NONE
        if refused is not None:
            trouble = _Trouble("NodeNotMarked", f"the node's marks cannot be removed: {refused}")
        wanted = status.with_preservation(self._machine.status, None, self._now)
        await self._conclude(wanted, trouble)
        if refused is not None:
            raise refused
        return DONE

    async def leave(self) -> Outcome:
        """Note what the Node says, complain of what cannot be read, and wait for the end."""
        await self._hand_over()
        await self._conclude(self._machine.status)
        return self._until_the_end()

    def _until_the_end(self) -> Outcome:
        until = preserved_until(self._machine)
        if until is None:
            return DONE
        left = min(until - self._control.now(), LONGEST_SLEEP)
        return Outcome(after=max(0.0, left.total_seconds()), reason="preserved until then")

    # ---- the machine ---------------------------------------------------------------------------

    async def _stamp(self) -> None:
        if preserved_until(self._machine) is not None:
            return
        until = whole_seconds(self._now + self._control.settings_of(self._machine).preserve_timeout)
        await self._conclude(status.with_preservation(self._machine.status, until, self._now))

    async def _hand_over(self) -> None:
        annotations = annotations_to_write(self._machine, self._node, self.decision)
        if annotations:
            patch: JSONObject = {"metadata": {"annotations": dict(annotations)}}
            bound = for_this_version(self._machine.metadata, patch)
            self._machine = await self._control.patch(self._machine, bound)

    async def _conclude(self, wanted: MachineStatus, trouble: _Trouble = _NONE) -> None:
        """Write the status, with what is wrong, and with what the Node says by now."""
        if self.decision.complaint and not trouble.text:
            trouble = _Trouble("InvalidAnnotation", self.decision.complaint)
        kind = OwnCondition.PRESERVATION_APPLIED
        if trouble.text:
            wanted = with_own(wanted, kind, STATUS_FALSE, *trouble, self._now)
        else:
            wanted = without_own(wanted, kind)
        if self._node is not None:
            wanted = node_condition.mirrored(wanted, self._node)
        if self._shown is not None:
            wanted = carried_over(wanted, self._shown)
        before = self._machine
        if wanted is before.status:
            return
        self._machine = await self._control.write_status(before, wanted)
        self._tell(before, self._machine)

    def _tell(self, before: Machine, after: Machine) -> None:
        tell, kind = self._control.tell, OwnCondition.PRESERVATION_APPLIED
        was, until = preserved_until(before), preserved_until(after)
        if was is None and until is not None:
            tell(after, EventType.NORMAL, "Preserved", f"Preserved until {rfc3339(until)}")
        if was is not None and until is None:
            tell(after, EventType.NORMAL, "PreservationEnded", "Preserved no longer")
        wrong = find_own(after.status, kind)
        if wrong is not None and wrong != find_own(before.status, kind):
            tell(after, EventType.WARNING, wrong.reason, wrong.message)

    # ---- its Node ------------------------------------------------------------------------------

    async def _mark(self, node: Node) -> tuple[Outcome, _Trouble]:
        """Mark the Node and say so on it; return when to look again, and what stands in the way."""
        phase = self._machine.phase
        failed = phase == MachinePhase.FAILED
        draining = failed and not node_condition.says_drained(node)
        marks = node_marks.marking_patch(
            node,
            self._now,
            annotated=not node_condition.says_preserved(node),
            tainted=True if draining else False if phase == MachinePhase.RUNNING else None,
        )
        if not failed:
            await self._abandon_drain(node)
        await self._patch(marks)
        if draining:
            return await self._drain(node)
        if failed:
            self._shown = withdrawn(self._machine.status)  # should that have got lost at its end
        await self._say(node_condition.DRAINED if failed else "")
        return DONE, _NONE

    async def _drain(self, node: Node) -> tuple[Outcome, _Trouble]:
        drain = self._step.drain
        if drain is None:
            await self._say(node_condition.DRAINED)
            return DONE, _NONE
        answer = await drain.drain(self._machine, self._wanted(self._node or node))
        self._machine = answer.machine
        self._shown = answer.status
        if isinstance(answer, Unfinished):
            if answer.trouble:
                await self._say(node_condition.NOT_DRAINED)
            again = Outcome(after=answer.after, reason=answer.reason)
            return again, _Trouble("DrainBlocked", answer.trouble)
        await self._say(node_condition.DRAINED)
        return DONE, _NONE

    async def _abandon_drain(self, node: Node) -> None:
        """Before the mark goes: it tells whoever comes after us that there was a drain."""
        if self._step.drain is not None and node_marks.is_tainted(node):
            self._machine = await self._step.drain.withdraw(self._machine)

    def _wanted(self, node: Node) -> MachineDrain:
        return of_a_node_that_stays(
            self._machine,
            self._control.settings_of(self._machine),
            start=node_marks.tainted_since(node) or self._now,
            purpose=Purpose.PRESERVATION,
            mark=Mark.BY_THE_ASKER,
        )

    async def _unmark(self) -> KubeError | None:
        """Take our marks off the Node. Return an error that must not hold up the end."""
        node = self._node
        if node is None:
            return None
        await self._abandon_drain(node)
        forget = self.decision.verdict is Verdict.END_AND_FORGET
        try:
            await self._patch(node_marks.unmarking_patch(node, forget=forget))
            if node_condition.find(node) is not None:
                await self._write_condition(node_condition.STOPPED)
        except NotFound:
            self._node = None
        except Conflict:
            raise
        except ApiError as error:
            return error
        return None

    async def _say(self, drain: str) -> None:
        until = preserved_until(self._machine)
        if until is not None:
            await self._write_condition(
                node_condition.preserved(self.decision.request, until, drain=drain)
            )

    async def _write_condition(self, wanted: Wording) -> None:
        if self._node is not None:
            patch = node_condition.condition_patch(self._node, wanted, self._now)
            await self._patch(patch, subresource="status", kind=PatchType.STRATEGIC)

    async def _patch(
        self, patch: JSONObject | None, *, subresource: str = "", kind: PatchType = PatchType.MERGE
    ) -> None:
        target, node = self._step.target, self._node
        if patch is None or target is None or node is None:
            return
        self._node = await target.writer.patch(
            NODES, node.metadata.name, patch, subresource=subresource, patch_type=kind
        )
