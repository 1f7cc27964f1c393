"""What machines are seen and changed through: the cluster that holds them, the one they join.

Reads come from stores. Writes go through writers, which put the answers into those stores.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.api.core import (
    NODES,
    Node,
    PersistentVolume,
    Pod,
    Secret,
    VolumeAttachment,
)
from mcm.api.machine import MACHINES, Machine, MachineClass, MachineStatus
from mcm.api.meta import JSONObject
from mcm.client.errors import NotFound
from mcm.client.verbs import ObjectClient, ObjectReader, ObjectWriter
from mcm.clock import Clock
from mcm.controllers.machine import status
from mcm.controllers.machine.settings import MachineSettings, settings_of
from mcm.controllers.node_ownership import NodeOwners
from mcm.controllers.provider import Credentials, collect
from mcm.controllers.settings import ControllerSettings
from mcm.events import EventSink, EventType
from mcm.informers.store import Store


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCluster:
    """The cluster that machines join."""

    client: ObjectClient
    writer: ObjectWriter
    nodes: Store[Node]
    pods: Store[Pod]
    volumes: Store[PersistentVolume]
    attachments: Store[VolumeAttachment]
    owners: NodeOwners
    """Whose Node is it: ask before anything is done to one."""

    async def live_node(self, name: str) -> Node | None:
        """Read the Node from the server, into the store: before anything is destroyed, be sure."""
        try:
            node = await self.client.get(NODES, name)
        except NotFound:
            return None
        self.nodes.observe(node)
        return node


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCluster:
    """The cluster that holds the machines, their classes and secrets; events go there too.

    Each write on a machine is one request: a fleet's cost at the API server is these. They raise
    what the API client raises.
    """

    machines: Store[Machine]
    classes: Store[MachineClass]
    secrets: Store[Secret]
    client: ObjectReader
    writer: ObjectWriter
    events: EventSink
    clock: Clock
    defaults: ControllerSettings

    def now(self) -> datetime:
        return self.clock.now()

    def settings_of(self, machine: Machine) -> MachineSettings:
        return settings_of(machine, self.defaults)

    def class_of(self, machine: Machine) -> MachineClass | None:
        return self.classes.get(class_key(machine))

    def credentials(self, machine_class: MachineClass) -> Credentials:
        return collect(machine_class, self.secrets.get)

    def current(self, machine: Machine) -> Machine | None:
        """Return what the store knows of this very machine; None if it is gone."""
        known = self.machines.get(machine.metadata.key)
        return known if known and known.metadata.uid == machine.metadata.uid else None

    async def reread(self, machine: Machine) -> None:
        """Read the machine from the server, into the store: where a write's answer is unknown."""
        meta = machine.metadata
        self.machines.observe(await self.client.get(MACHINES, meta.name, namespace=meta.namespace))

    def tell(self, machine: Machine, kind: EventType, reason: str, note: str) -> None:
        """Record a Kubernetes Event on the machine."""
        self.events.event(MACHINES, machine, kind, reason, note)

    async def patch(self, machine: Machine, patch: JSONObject) -> Machine:
        """Patch metadata or spec; return the machine as it then is."""
        meta = machine.metadata
        return await self.writer.patch(MACHINES, meta.name, patch, namespace=meta.namespace)

    async def write_status(self, machine: Machine, wanted: MachineStatus) -> Machine:
        """Make ``wanted`` the machine's status; no request if it is. Raises Conflict if anything
        about the machine changed since it was read."""
        patch = status.patch_of(machine, wanted)
        if patch is None:
            return machine
        meta = machine.metadata
        return await self.writer.patch(
            MACHINES, meta.name, patch, namespace=meta.namespace, subresource="status"
        )

    async def write_failure(self, machine: Machine, wanted: MachineStatus) -> Machine:
        """Like ``write_status``, but what only repeats what stands there is not written."""
        if status.is_repetition(machine.status, wanted):
            return machine
        return await self.write_status(machine, wanted)

    async def delete(self, machine: Machine) -> None:
        """Have this very machine deleted. Raises NotFound if it is gone."""
        meta = machine.metadata
        await self.writer.delete(MACHINES, meta.name, namespace=meta.namespace, uid=meta.uid)


def class_key(machine: Machine) -> str:
    """Return the key of the class a machine refers to."""
    return f"{machine.metadata.namespace}/{machine.spec.class_.name}"
