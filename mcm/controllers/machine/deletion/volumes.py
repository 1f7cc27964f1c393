"""Detaching volumes after a forced drain: spare them the wait for a kubelet that may be dead."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, final

from mcm.api.core import Node, VolumeAttachment
from mcm.api.machine import LastOperation, Machine
from mcm.controllers.machine import last_operation
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.deletion.attachments import delete_live, tell_left
from mcm.controllers.machine.deletion.out_of_service import OutOfService, out_of_service_since
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.memory import Detachment
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.runtime import Outcome
from mcm.drain.mode import is_kubelet_dead
from mcm.drain.volumes import attachments_on
from mcm.events import EventType

_TRIES: Final = 5
"""Failed rounds after which attachments are left to the cluster's own controller."""


@final
class VolumeDetachment:
    """The step DETACH_VOLUMES, never longer than the detach timeout.

    ``under_way`` is by machine UID. A dead kubelet's Node is given up by a taint, upon which the
    cluster's controller detaches what it holds; that is waited for, and what is left then is
    deleted without waiting. Elsewhere attachments are deleted at once, and their end is waited for.
    """

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster | None,
        record: DeletionRecord,
        under_way: MutableMapping[str, Detachment],
        out_of_service: OutOfService | None,
    ) -> None:
        self._control = control
        self._target = target
        self._record = record
        self._under_way = under_way
        self._out_of_service = out_of_service

    async def detach(self, machine: Machine) -> StepResult:
        """Go on with the detachment; return the machine with the next step's marker, or when to
        look again if nothing happens."""
        target, record, name = self._target, self._record, machine.node_name
        if target is None or self._out_of_service is None:
            return record.proceed(machine, last_operation.no_target_cluster())
        node = target.nodes.get(name)
        if node is None:
            gone = last_operation.detach_skipped(f'node "{name}" not found')
            return record.proceed(machine, gone)
        if obstacle := target.owners.find(machine).obstacle:
            return record.proceed(machine, last_operation.detach_skipped(obstacle))
        round_ = await self._round(target, self._out_of_service, node, machine)
        result = await round_.go_on()
        if not isinstance(result, Outcome):
            self._under_way.pop(machine.metadata.uid, None)
        return result

    async def _round(
        self, target: TargetCluster, out_of_service: OutOfService, node: Node, machine: Machine
    ) -> _Round:
        uid = machine.metadata.uid
        if uid not in self._under_way:
            self._under_way[uid] = await self._begun(target, out_of_service, node)
        return _Round(
            self._control,
            target,
            self._record,
            self._under_way,
            out_of_service,
            machine=machine,
            node=node,
        )

    async def _begun(
        self, target: TargetCluster, out_of_service: OutOfService, node: Node
    ) -> Detachment:
        """Look at what there is to detach, and decide how."""
        now = self._control.now()
        found = frozenset(
            a.metadata.uid for a in attachments_on(target.attachments, node.metadata.name)
        )
        volumes = max(len(found), len(node.status.volumes_attached))
        by_taint = out_of_service_since(node) is not None or (
            volumes > 0
            and is_kubelet_dead(node.status.conditions, now)
            and await out_of_service.is_heeded()
        )
        return Detachment(now, found, volumes, by_taint)


@final
class _Round:
    """One look at what is left on the Node, and what is done about it."""

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        record: DeletionRecord,
        under_way: MutableMapping[str, Detachment],
        out_of_service: OutOfService,
        *,
        machine: Machine,
        node: Node,
    ) -> None:
        self._control = control
        self._target = target
        self._record = record
        self._under_way = under_way
        self._out_of_service = out_of_service
        self._detachment = under_way[machine.metadata.uid]
        self._machine = machine
        self._node = node
        self._name = node.metadata.name
        self._timeout = control.defaults.pv_detach_timeout

    async def go_on(self) -> StepResult:
        if not self._left() and not self._node.status.volumes_attached:
            return await self._proceed(last_operation.volumes_detached(self._name))
        if wait := self._record.wait_for(self._machine, "detach"):
            return Outcome(after=wait, reason="volume attachments could not be deleted")
        if self._detachment.by_taint and (since := await self._given_up_since()):
            if wait := self._seconds_left(since):
                return await self._await(since, wait, last_operation.out_of_service)
            return await self._delete(then_wait=False)
        return await self._delete(then_wait=True)

    # ---- by the cluster's own controller ---------------------------------------------------------

    async def _given_up_since(self) -> datetime | None:
        """Give the Node up, unless it is; return since when. None: the server does not let us."""
        node = await self._out_of_service.give_up(self._machine, self._node, "its kubelet is dead")
        if node is None:
            self._under_way[self._machine.metadata.uid] = replace(self._detachment, by_taint=False)
            return None
        self._node, now = node, self._control.now()
        return min(out_of_service_since(node) or now, now)

    # ---- by ourselves ----------------------------------------------------------------------------

    async def _delete(self, *, then_wait: bool) -> StepResult:
        if errors := await delete_live(self._target.writer, self._left()):
            return await self._failed("; ".join(sorted(map(str, errors))))
        since = self._deleted_since()
        if then_wait and since is not None and (wait := self._seconds_left(since)):
            return await self._await(since, wait, last_operation.detaching)
        if left := self._left():
            tell_left(self._control, self._machine, self._name, [a.metadata.name for a in left])
        return await self._proceed(last_operation.no_live_attachments(self._name))

    def _deleted_since(self) -> datetime | None:
        """Return since when what is left is being deleted; None if nothing is left."""
        left = self._left()
        moments = (a.metadata.deletion_timestamp for a in left)
        return min([*filter(None, moments), self._detachment.since]) if left else None

    async def _failed(self, error: str) -> StepResult:
        record, machine = self._record, self._machine
        wait = record.failed(machine, Pace.TRANSIENT, "detach")
        if record.failures(machine) >= _TRIES or not self._seconds_left(self._detachment.since):
            self._control.tell(machine, EventType.WARNING, "VolumesLeftAttached", error)
            return await self._proceed(last_operation.detach_skipped(error))
        await record.show(machine, last_operation.detach_failed(error))
        return Outcome(after=wait, reason="volume attachments could not be deleted")

    # ---- both ------------------------------------------------------------------------------------

    def _left(self) -> Sequence[VolumeAttachment]:
        """Return what is left of what there was when the step began."""
        wanted = self._detachment.attachments
        found = attachments_on(self._target.attachments, self._name)
        return [a for a in found if a.metadata.uid in wanted]

    def _seconds_left(self, since: datetime) -> float:
        """Return the seconds that are left of the detach timeout; 0: it is over."""
        return max(0.0, (since + self._timeout - self._control.now()).total_seconds())

    async def _await(self, since: datetime, wait: float, words: last_operation.Wait) -> Outcome:
        operation = words(self._name, self._detachment.volumes, since, since + self._timeout)
        await self._record.show(self._machine, operation)
        return Outcome(after=wait, reason="volumes are being detached")

    async def _proceed(self, done: LastOperation) -> Machine:
        return await self._record.written(self._record.proceed(self._machine, done))
