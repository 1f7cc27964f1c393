"""Take a machine away: pods, VM, Node object, and at last our finalizer.

Where it is in that is written on the machine before each step that cannot be undone, so any process
can go on from there. What can go on now goes on in the same pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import final

from mcm.api.core import NODES, VOLUME_ATTACHMENTS, Node, VolumeAttachment
from mcm.api.machine import LastOperation, Machine, MachineClass, MachinePhase
from mcm.api.names import MACHINE_FINALIZER
from mcm.client.errors import Conflict, KubeError, NotFound
from mcm.client.requests import PatchType
from mcm.controllers.fanout import fan_out
from mcm.controllers.finalizers import without_finalizer
from mcm.controllers.indexes import attachments_on, nodes_claiming
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.creation.bootstrap_token import revoke_token
from mcm.controllers.machine.deletion import provider_answers
from mcm.controllers.machine.deletion.drain import drain
from mcm.controllers.machine.deletion.provider_answers import Answer
from mcm.controllers.machine.deletion.steps import DeletionStep, step_of
from mcm.controllers.machine.last_operation import Marker
from mcm.controllers.machine.node.matching import node_label_patch
from mcm.controllers.machine.node.template import release_patch
from mcm.controllers.machine.ports import Ports, Progress, Target
from mcm.controllers.machine.writes import write_failure, write_machine, write_status
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.provider import ProviderFailed, Purpose
from mcm.controllers.runtime import DONE, Outcome
from mcm.driver.contract import DeleteMachineRequest, GetMachineStatusRequest
from mcm.events import EventType

_ATTACHMENT_TRIES = 5
"""Failed rounds after which attachments are left to the cluster's own controller."""

Going = Machine | Outcome
"""Where a step leads: the machine with a new marker, or when to look at the same step again."""


@final
class Termination:
    """The deletion flow on one set of ports."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._acts: Mapping[DeletionStep, Callable[[Machine], Awaitable[Going]]] = {
            DeletionStep.BEGIN: self._begin,
            DeletionStep.FIND_NODE: self._find_node,
            DeletionStep.DRAIN: self._drain,
            DeletionStep.DETACH_VOLUMES: self._detach_volumes,
            DeletionStep.DELETE_VM: self._delete_vm,
            DeletionStep.DELETE_NODE: self._delete_node,
            DeletionStep.REMOVE_FINALIZER: self._remove_finalizer,
        }

    async def terminate(self, machine: Machine) -> Progress:
        """Go as far as possible now. The machine has a deletion timestamp and our finalizer."""
        for _ in range(2 * len(DeletionStep)):
            going = await self._acts[step_of(machine)](machine)
            if isinstance(going, Outcome):
                return Progress(machine, going)
            machine = going
        raise AssertionError(f"the deletion of {machine.metadata.key} goes in circles")

    # ---- steps ---------------------------------------------------------------------------------

    async def _begin(self, machine: Machine) -> Going:
        """Enter the phase. Where the Node is known, or is of no use, its search is left out."""
        if self._ports.target is None:
            return await self._enter(machine, last_operation.no_target_cluster())
        if not machine.node_name and (node := self._node_claiming(machine)):
            patch = node_label_patch(machine, node.metadata.name)
            machine = await write_machine(self._ports, machine, patch)
        known = bool(machine.node_name)
        marker = Marker.DRAIN if known else Marker.FIND_NODE
        return await self._enter(machine, last_operation.terminating(marker))

    async def _find_node(self, machine: Machine) -> Going:
        """Ask the provider under which name the VM registers, unless a Node tells."""
        ports = self._ports
        if ports.target is None:
            return await self._proceed(machine, last_operation.no_target_cluster())
        if machine.node_name:
            return await self._proceed(machine, last_operation.terminating(Marker.DRAIN))
        if node := self._node_claiming(machine):
            return await self._named(machine, node.metadata.name)
        class_ = ports.class_of(machine)
        if class_ is None:
            reason = f"machine class {self._class_key(machine)} not found"
            return await self._proceed(machine, last_operation.vm_status_unknowable(reason))
        if wait := self._wait_for(machine, self._circumstances(class_)):
            return Outcome(after=wait, reason="provider back-off")
        with ports.places.place(
            Purpose.DELETION, machine.metadata.key, class_key=class_.metadata.key
        ) as placed:
            if not placed:
                return Outcome(reason="waiting for a place to delete")
            return await self._ask_for_node(machine, class_)

    async def _ask_for_node(self, machine: Machine, class_: MachineClass) -> Going:
        data = self._ports.credentials(class_).data
        try:
            found = await self._ports.provider.status(
                GetMachineStatusRequest(machine, class_, data)
            )
        except ProviderFailed as failure:
            answer = provider_answers.on_vm_status_error(failure.error, failure.text)
            return await self._answered(machine, class_, answer)
        if not found.node_name:
            return await self._proceed(machine, last_operation.terminating(Marker.DRAIN))
        return await self._named(machine, found.node_name)

    async def _drain(self, machine: Machine) -> Going:
        if self._ports.target is None:
            return await self._proceed(machine, last_operation.no_target_cluster())
        return await drain(self._ports, self._ports.target, machine)

    async def _detach_volumes(self, machine: Machine) -> Going:
        """After a forced drain: spare the volumes the wait for a kubelet that may be dead."""
        target, name = self._ports.target, machine.node_name
        if target is None:
            return await self._proceed(machine, last_operation.no_target_cluster())
        node = target.nodes.get(name)
        if node is None:
            gone = last_operation.detach_skipped(f'node "{name}" not found')
            return await self._proceed(machine, gone)
        live = [a for a in attachments_on(target.attachments, name) if _is_live(a)]
        if not node.status.volumes_attached and not live:
            return await self._proceed(machine, last_operation.volumes_detached(name))
        if wait := self._wait_for(machine, "detach"):
            return Outcome(after=wait, reason="volume attachments could not be deleted")
        errors = await fan_out(lambda a: _delete_attachment(target, a), live)
        if not errors:
            return await self._proceed(machine, last_operation.no_live_attachments(name))
        return await self._not_detached(machine, "; ".join(sorted(map(str, errors))))

    async def _not_detached(self, machine: Machine, error: str) -> Going:
        ports, uid = self._ports, machine.metadata.uid
        wait = ports.backoff.failed(
            uid, Pace.TRANSIENT, ports.clock.monotonic(), circumstances="detach"
        )
        if ports.backoff.count(uid) >= _ATTACHMENT_TRIES:
            ports.tell(machine, EventType.WARNING, "VolumesLeftAttached", error)
            return await self._proceed(machine, last_operation.detach_skipped(error))
        await self._show(machine, last_operation.detach_failed(error))
        return Outcome(after=wait, reason="volume attachments could not be deleted")

    async def _delete_vm(self, machine: Machine) -> Going:
        ports, class_ = self._ports, self._ports.class_of(machine)
        if class_ is None:
            return await self._without_class(machine)
        if wait := self._wait_for(machine, self._circumstances(class_)):
            return Outcome(after=wait, reason="provider back-off")
        with ports.places.place(
            Purpose.DELETION, machine.metadata.key, class_key=class_.metadata.key
        ) as placed:
            if not placed:
                return Outcome(reason="waiting for a place to delete")
            return await self._ask_to_delete(machine, class_)

    async def _without_class(self, machine: Machine) -> Going:
        """Nobody can be asked to delete the VM: wait for the class, if there was ever a VM."""
        reason = f"machine class {self._class_key(machine)} not found"
        if not machine.spec.provider_id:
            return await self._proceed(machine, last_operation.vm_never_created(reason))
        remedy = f"{reason}, yet VM {machine.spec.provider_id} exists: create the class anew"
        self._ports.tell(machine, EventType.WARNING, "DeletionBlocked", remedy)
        await self._show(machine, last_operation.vm_deletion_blocked(remedy))
        return Outcome(reason="waiting for the class")

    async def _ask_to_delete(self, machine: Machine, class_: MachineClass) -> Going:
        ports = self._ports
        credentials = ports.credentials(class_)
        request = DeleteMachineRequest(machine, class_, credentials.data)
        try:
            response = await ports.provider.delete(request)
        except ProviderFailed as failure:
            # A missing secret may not matter to a deletion; if it fails, it is worth knowing.
            text = "; ".join((failure.text, *credentials.problems))
            answer = provider_answers.on_vm_deletion_error(failure.error, text)
            state = failure.error.last_known_state if failure.error else ""
            return await self._answered(machine, class_, answer, known_state=state)
        ports.metrics.deleted(machine, class_, ports.now())
        ports.tell(machine, EventType.NORMAL, "VMDeleted", f"Deleted VM {machine.spec.provider_id}")
        answer = Answer(last_operation.vm_deleted())
        return await self._answered(machine, class_, answer, known_state=response.last_known_state)

    async def _delete_node(self, machine: Machine) -> Going:
        """Delete the Node object, once our own finalizer on it is gone. Others' may hold it."""
        target, name = self._ports.target, machine.node_name
        if target is None or not name:
            nameless = last_operation.no_node_label(machine.metadata.name)
            return await self._proceed(machine, nameless)
        node = target.nodes.get(name) or await _node_unseen(target, name)
        if node is None:
            return await self._proceed(machine, last_operation.no_node_object(name))
        if wait := self._wait_for(machine, "node"):
            return Outcome(after=wait, reason="the node object could not be deleted")
        try:
            node = await _release_node(target, node)
        except NotFound:
            return await self._proceed(machine, last_operation.no_node_object(name))
        except Conflict:
            raise
        except KubeError as error:
            return await self._node_stays(
                machine, last_operation.node_finalizer_failed(name, str(error))
            )
        try:
            await target.writer.delete(NODES, name, uid=node.metadata.uid)
        except NotFound:
            return await self._proceed(machine, last_operation.no_node_object(name))
        except Conflict:
            raise
        except KubeError as error:
            return await self._node_stays(
                machine, last_operation.node_deletion_failed(name, str(error))
            )
        return await self._proceed(machine, last_operation.node_deleted(name))

    async def _node_stays(self, machine: Machine, failure: LastOperation) -> Outcome:
        ports = self._ports
        await self._show(machine, failure)
        wait = ports.backoff.failed(
            machine.metadata.uid, Pace.TRANSIENT, ports.clock.monotonic(), circumstances="node"
        )
        return Outcome(after=wait, reason="the node object could not be deleted")

    async def _remove_finalizer(self, machine: Machine) -> Going:
        change = without_finalizer(machine.metadata, MACHINE_FINALIZER)
        if change is not None:
            await revoke_token(self._ports, machine)
            patch = for_this_version(machine.metadata, change)
            try:
                await write_machine(self._ports, machine, patch)
            except NotFound:
                return DONE
            self._ports.tell(machine, EventType.NORMAL, "Deleted", "The machine is gone")
        return DONE

    # ---- what steps share ----------------------------------------------------------------------

    async def _enter(self, machine: Machine, done: LastOperation) -> Machine:
        now = self._ports.now()
        wanted = status.with_operation(machine.status, done, now)
        wanted = status.with_phase(wanted, MachinePhase.TERMINATING, now)
        return await write_status(self._ports, machine, wanted)

    async def _proceed(self, machine: Machine, done: LastOperation) -> Machine:
        """Write the marker of the next step; what failed before counts no more."""
        self._ports.backoff.forget(machine.metadata.uid)
        wanted = status.with_operation(machine.status, done, self._ports.now())
        return await write_status(self._ports, machine, wanted)

    async def _show(self, machine: Machine, failure: LastOperation) -> Machine:
        wanted = status.with_operation(machine.status, failure, self._ports.now())
        return await write_failure(self._ports, machine, wanted)

    async def _named(self, machine: Machine, node_name: str) -> Machine:
        patch = node_label_patch(machine, node_name)
        machine = await write_machine(self._ports, machine, patch)
        return await self._proceed(machine, last_operation.terminating(Marker.DRAIN))

    async def _answered(
        self,
        machine: Machine,
        class_: MachineClass,
        answer: Answer,
        *,
        known_state: str | None = None,
    ) -> Going:
        """Record the provider's answer: go on, or leave the provider alone for a while."""
        ports = self._ports
        wanted = status.with_operation(machine.status, answer.operation, ports.now())
        if known_state is not None:
            wanted = status.with_known_state(wanted, known_state)
        if answer.pace is None:
            ports.backoff.forget(machine.metadata.uid)
            return await write_status(ports, machine, wanted)
        ports.tell(machine, EventType.WARNING, "ProviderError", answer.operation.description)
        await write_failure(ports, machine, wanted)
        wait = ports.backoff.failed(
            machine.metadata.uid,
            answer.pace,
            ports.clock.monotonic(),
            circumstances=self._circumstances(class_),
        )
        return Outcome(after=wait, reason="provider error")

    def _wait_for(self, machine: Machine, circumstances: Hashable) -> float:
        now = self._ports.clock.monotonic()
        return self._ports.backoff.wait(machine.metadata.uid, now, circumstances=circumstances)

    def _circumstances(self, class_: MachineClass) -> tuple[str, ...]:
        versions = self._ports.credentials(class_).versions
        return (class_.metadata.resource_version, *versions)

    def _node_claiming(self, machine: Machine) -> Node | None:
        """Find a Node that says it is this machine's: only needed where the machine cannot say."""
        target = self._ports.target
        if target is None:
            return None
        return next(iter(nodes_claiming(target.nodes, machine.metadata.name)), None)

    @staticmethod
    def _class_key(machine: Machine) -> str:
        return f"{machine.metadata.namespace}/{machine.spec.class_.name}"


def _is_live(attachment: VolumeAttachment) -> bool:
    return attachment.metadata.deletion_timestamp is None


async def _delete_attachment(target: Target, attachment: VolumeAttachment) -> None:
    meta = attachment.metadata
    try:
        await target.writer.delete(VOLUME_ATTACHMENTS, meta.name, uid=meta.uid)
    except (NotFound, Conflict):
        return  # gone, or another one of that name


async def _node_unseen(target: Target, name: str) -> Node | None:
    """Ask the server for a Node the mirror does not show: it may have joined a moment ago, and
    once the machine is gone nobody would look for it any more."""
    try:
        return await target.client.get(NODES, name)
    except NotFound:
        return None


async def _release_node(target: Target, node: Node) -> Node:
    patch = release_patch(node)
    if patch is None:
        return node
    return await target.writer.patch(
        NODES, node.metadata.name, patch, patch_type=PatchType.STRATEGIC
    )
