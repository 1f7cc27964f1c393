"""The Go original's machine controller, played on the bench by what the facts say of its steps.

Slow and simple, as it is: a step a pass, found again by phase and by markers in the description.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, final

from mcm.api.core import NODES, PODS, SECRETS, Node, NodeCondition
from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine, MachineClass
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_NODE, LABEL_NODE_MACHINE_NAME, MACHINE_FINALIZER, NODE_FINALIZER
from mcm.api.timestamps import rfc3339
from mcm.client.errors import NotFound
from mcm.client.requests import PatchType
from mcm.cluster_commands.connecting import read_all
from mcm.driver import (
    Code,
    CreateMachineRequest,
    DeleteMachineRequest,
    DriverError,
    GetMachineStatusRequest,
    InitializeMachineRequest,
)
from tests.unit.machine.bench import NAMESPACE, Bench
from tests.unit.machine.takeover.go_original import DELETION_MARKERS, JUDGED_BY, step_of

_EVERY: Final = 5.0
_STATUS, _DRAIN, _DETACH, _VM, _NODE, _FINALIZER = DELETION_MARKERS
_TOKEN_OF: Final = "bootstrap-token-{}"


@final
class PlayedOriginal:
    """Runs until it is cancelled. ``tokens`` is what its user data was filled with, by machine."""

    def __init__(self, bench: Bench) -> None:
        self._b = bench
        self.tokens: dict[str, str] = {}
        self.restarted: set[str] = set()
        """Machines of whose deletion it could not tell how far it was, after it had begun."""

    async def run(self) -> None:
        while True:
            await self._b.clock.sleep(_EVERY)
            for machine in await read_all(self._b.client, MACHINES, namespace=NAMESPACE):
                await self._pass(machine)

    async def _pass(self, machine: Machine) -> None:
        deleted = machine.metadata.deletion_timestamp is not None
        if MACHINE_FINALIZER not in machine.metadata.finalizers:
            if not deleted:
                finalizers: JSONObject = {"metadata": {"finalizers": [MACHINE_FINALIZER]}}
                await self._patch(machine, finalizers)
            return
        if deleted:
            await self._delete(machine)
            return
        if machine.node_name and machine.phase and await self._health(machine):
            return
        if not machine.spec.provider_id or machine.phase in ("", "CrashLoopBackOff"):
            await self._create(machine)

    # ---- creation --------------------------------------------------------------------------------

    async def _create(self, machine: Machine) -> None:
        driver, class_ = self._b.driver, await self._class(machine)
        secret = {"userData": (await self._token(machine)).encode()}
        made = raw = False
        try:
            found = await driver.get_machine_status(
                GetMachineStatusRequest(machine, class_, secret)
            )
            provider_id, node_name = found.provider_id, found.node_name
        except DriverError as error:
            raw = error.code is Code.UNINITIALIZED
            provider_id, node_name = error.provider_id, error.node_name
            if not raw and machine.spec.provider_id:
                provider_id, node_name = machine.spec.provider_id, machine.node_name
            elif not raw:
                new = await driver.create_machine(CreateMachineRequest(machine, class_, secret))
                provider_id, node_name, made = new.provider_id, new.node_name, True
                self.tokens[machine.metadata.name] = secret["userData"].decode()
        priority = machine.metadata.annotations.get("machinepriority.machine.sapcloud.io", "")
        if not (machine.node_name and priority and machine.spec.provider_id):
            metadata: JSONObject = {
                "labels": {LABEL_NODE: node_name},
                "annotations": {"machinepriority.machine.sapcloud.io": priority or "3"},
            }
            await self._patch(machine, {"metadata": metadata, "spec": {"providerID": provider_id}})
        if made or raw:
            await driver.initialize_machine(InitializeMachineRequest(machine, class_, secret))
        elif machine.phase in ("", "CrashLoopBackOff"):
            await self._status(
                machine, "Creating machine on cloud provider", "Create", phase="Pending"
            )

    async def _token(self, machine: Machine) -> str:
        """It reuses what it finds, and makes what it does not."""
        id_ = machine.metadata.name.encode()[-5:].hex()[:6]
        name = _TOKEN_OF.format(id_)
        try:
            found = await self._b.client.get(SECRETS, name, namespace="kube-system")
        except NotFound:
            data = {"token-id": id_, "token-secret": "0123456789abcdef", "description": "..."}
            body: JSONObject = {
                "metadata": {"name": name},
                "data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()},
            }
            found = await self._b.client.create(SECRETS, body, namespace="kube-system")
        parts = (found.data["token-id"], found.data["token-secret"])
        return ".".join(base64.b64decode(part).decode() for part in parts)

    # ---- health ----------------------------------------------------------------------------------

    async def _health(self, machine: Machine) -> bool:
        """Tell whether something was written, which ends its pass."""
        node = await self._node(machine.node_name)
        if node is None:
            if machine.status.conditions and machine.phase == "Running":
                await self._status(machine, "Node object went missing.", "HealthCheck", "Unknown")
                return True
            return False
        await self._claim(node, machine)
        theirs = {(c.type, c.status) for c in node.status.conditions}
        dirty = theirs != {(c.type, c.status) for c in machine.status.conditions}
        phase, healthy = machine.phase, _is_healthy(node.status.conditions)
        if healthy and phase != "Running":
            phase = "Running"
            id_ = machine.metadata.name.encode()[-5:].hex()[:6]
            await self._delete_quietly(_TOKEN_OF.format(id_))
        elif not healthy and phase == "Running":
            phase = "Unknown"
        if not dirty and phase == machine.phase:
            return False
        await self._status(machine, f"now {phase}", "HealthCheck", phase, node.status.conditions)
        return True

    async def _claim(self, node: Node, machine: Machine) -> None:
        labels, finalizers = node.metadata.labels, node.metadata.finalizers
        if labels.get(LABEL_NODE_MACHINE_NAME) != machine.metadata.name:
            own: JSONObject = {LABEL_NODE_MACHINE_NAME: machine.metadata.name}
            await self._on_node(node, {"metadata": {"labels": own}})
        if NODE_FINALIZER not in finalizers:
            await self._on_node(node, {"metadata": {"finalizers": [*finalizers, NODE_FINALIZER]}})

    # ---- deletion --------------------------------------------------------------------------------

    async def _delete(self, machine: Machine) -> None:
        step = step_of(machine)
        if step == 1 or step is None:
            if step is None:
                self.restarted.add(machine.metadata.name)
            await self._status(machine, _STATUS, "Delete", "Terminating")
        elif step == 2:
            await self._find_node(machine)
        elif step == 3:
            await self._drain(machine)
        elif step == 4:
            await self._status(machine, f"No Live VolumeAttachments. {_VM}", "Delete")
        elif step == 5:
            await self._delete_vm(machine)
        elif step == 6:
            await self._delete_node(machine)
        else:
            rest = [f for f in machine.metadata.finalizers if f != MACHINE_FINALIZER]
            await self._patch(machine, {"metadata": {"finalizers": rest}})

    async def _find_node(self, machine: Machine) -> None:
        if not machine.node_name:
            request = GetMachineStatusRequest(machine, await self._class(machine), {})
            try:
                found = await self._b.driver.get_machine_status(request)
            except DriverError:
                pass
            else:
                await self._patch(machine, {"metadata": {"labels": {LABEL_NODE: found.node_name}}})
                machine = await self._b.machine(machine.metadata.name)
        await self._status(machine, _DRAIN, "Delete")

    async def _drain(self, machine: Machine) -> None:
        if not machine.node_name:
            await self._status(machine, f"Skipping drain. {_VM}", "Delete")
            return
        node = await self._node(machine.node_name)
        if node is not None and not node.spec.unschedulable:
            await self._on_node(node, {"spec": {"unschedulable": True}})
        pods = await read_all(self._b.client, PODS)
        left = [pod for pod in pods if pod.spec.node_name == machine.node_name]
        for pod in left:
            meta = pod.metadata
            if meta.deletion_timestamp is None:
                await self._b.client.evict(meta.name, namespace=meta.namespace)
        if not left:
            await self._status(machine, f"Drain successful. {_VM}", "Delete")

    async def _delete_vm(self, machine: Machine) -> None:
        request = DeleteMachineRequest(machine, await self._class(machine), {})
        await self._b.driver.delete_machine(request)
        await self._status(machine, f"VM deletion was successful. {_NODE}", "Delete")

    async def _delete_node(self, machine: Machine) -> None:
        node = await self._node(machine.node_name) if machine.node_name else None
        if node is not None:
            rest = [f for f in node.metadata.finalizers if f != NODE_FINALIZER]
            await self._on_node(node, {"metadata": {"finalizers": rest}})
            with suppress(NotFound):
                await self._b.client.delete(NODES, node.metadata.name)
        await self._status(
            machine, f"Deletion of Node Object is successful. {_FINALIZER}", "Delete"
        )

    # ---- its hands -------------------------------------------------------------------------------

    async def _class(self, machine: Machine) -> MachineClass:
        name = machine.spec.class_.name
        return await self._b.client.get(MACHINE_CLASSES, name, namespace=NAMESPACE)

    async def _node(self, name: str) -> Node | None:
        try:
            return await self._b.client.get(NODES, name)
        except NotFound:
            return None

    async def _patch(self, machine: Machine, patch: JSONObject) -> None:
        await self._b.client.patch(MACHINES, machine.metadata.name, patch, namespace=NAMESPACE)

    async def _on_node(self, node: Node, patch: JSONObject) -> None:
        await self._b.client.patch(NODES, node.metadata.name, patch, patch_type=PatchType.MERGE)

    async def _delete_quietly(self, name: str) -> None:
        with suppress(NotFound):
            await self._b.client.delete(SECRETS, name, namespace="kube-system")

    async def _status(
        self,
        machine: Machine,
        says: str,
        kind: str,
        phase: str = "",
        conditions: tuple[NodeCondition, ...] | None = None,
    ) -> None:
        now = rfc3339(self._b.clock.now())
        operation = {"description": says, "type": kind, "state": "Processing"}
        status: JSONObject = {"lastOperation": {**operation, "lastUpdateTime": now}}
        if phase:
            status["currentStatus"] = {"phase": phase, "lastUpdateTime": now}
        if conditions is not None:
            status["conditions"] = [{"type": c.type, "status": c.status} for c in conditions]
        await self._b.client.patch(
            MACHINES,
            machine.metadata.name,
            {"status": status},
            namespace=NAMESPACE,
            subresource="status",
        )


def _is_healthy(conditions: tuple[NodeCondition, ...]) -> bool:
    said: Mapping[str, str] = {c.type: c.status for c in conditions}
    bad = JUDGED_BY - {"Ready"}
    return (
        bool(said)
        and said.get("Ready", "True") == "True"
        and all(said.get(kind, "False") == "False" for kind in bad)
    )
