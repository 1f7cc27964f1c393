"""What the cluster autoscaler does to a MachineDeployment: a small imitation, with its races.

It lowers ``spec.replicas``, the list of machines to go and the time of the change in one update,
after it tainted their Nodes; then it cordons them, and again in each of its rounds as long as they
are listed. It never scales down in the middle of an update, and never marks who is listed, failed
or terminating. It uncordons nobody. The older way marks the machines first, one by one, and lowers
the replicas in a second step. Scaling up raises the replicas, and takes back no mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES, Machine, MachineDeployment, MachinePhase
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_TRIGGER_DELETION,
    PRIORITY_DELETE_FIRST,
)
from mcm.api.timestamps import rfc3339
from mcm.client.errors import Conflict, NotFound
from mcm.simulation.harness import Simulation

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
NAMESPACE = "default"


@final
class ClusterAutoscaler:
    """Acts on one deployment, as its user. ``marked`` are the names of all it ever wanted gone."""

    def __init__(self, sim: Simulation, deployment: str) -> None:
        self._sim = sim
        self._name = deployment
        self.marked: set[str] = set()

    async def scale_up(self, by: int) -> None:
        deployment = await self._deployment()
        await self._patch(deployment, {"spec": {"replicas": deployment.spec.replicas + by}})

    async def scale_down(self, names: Iterable[str]) -> Sequence[str]:
        """Take those of ``names`` away that can be; return which."""
        deployment = await self._deployment()
        listed = _listed(deployment)
        chosen = [n for n in dict.fromkeys(names) if n not in listed and await self._may_go(n)]
        chosen = chosen[: deployment.spec.replicas]
        if not chosen or not _is_settled(deployment):
            return ()
        for name in chosen:
            await self._taint(name)
        now = rfc3339(self._sim.clock.now())
        text = ",".join([*_entries(deployment), *(f"{name}~{now}" for name in chosen)])
        change: JSONObject = {
            "metadata": {
                "annotations": {
                    ANNOTATION_TRIGGER_DELETION: text,
                    ANNOTATION_REPLICA_CHANGE_BY_SCALER: now,
                }
            },
            "spec": {"replicas": deployment.spec.replicas - len(chosen)},
        }
        try:
            await self._patch(deployment, change)
        except Conflict:
            for name in chosen:
                await self._clean(name)
            return ()
        self.marked |= set(chosen)
        for name in chosen:
            await self._cordon(name)
        return chosen

    async def scale_down_the_older_way(self, name: str, pause: float) -> Sequence[str]:
        """Mark a machine, and lower the replicas ``pause`` seconds later."""
        if not _is_settled(await self._deployment()) or not await self._may_go(name):
            return ()
        await self._taint(name)
        mark = {
            ANNOTATION_PRIORITY: PRIORITY_DELETE_FIRST,
            ANNOTATION_MARKED_FOR_DELETION: rfc3339(self._sim.clock.now()),
        }
        try:
            await self._sim.client.patch(
                MACHINES, name, {"metadata": {"annotations": dict(mark)}}, namespace=NAMESPACE
            )
        except NotFound:
            return ()
        self.marked.add(name)
        await self._sim.pass_time(pause)
        deployment = await self._deployment()
        now = rfc3339(self._sim.clock.now())
        change: JSONObject = {
            "metadata": {"annotations": {ANNOTATION_REPLICA_CHANGE_BY_SCALER: now}},
            "spec": {"replicas": deployment.spec.replicas - 1},
        }
        await self._patch(deployment, change)
        await self._cordon(name)
        return (name,)

    async def round(self) -> None:
        """What it does every few seconds whatever happens: cordon the Nodes of who is listed."""
        for name in _listed(await self._deployment()):
            await self._cordon(name)

    # ---- inside --------------------------------------------------------------------------------

    async def _deployment(self) -> MachineDeployment:
        return await self._sim.client.get(MACHINE_DEPLOYMENTS, self._name, namespace=NAMESPACE)

    async def _patch(self, deployment: MachineDeployment, change: JSONObject) -> None:
        version: JSONObject = {"resourceVersion": deployment.metadata.resource_version}
        meta = change.get("metadata")
        bound: JSONObject = {
            **change,
            "metadata": {**(meta if isinstance(meta, dict) else {}), **version},
        }
        await self._sim.client.patch(MACHINE_DEPLOYMENTS, self._name, bound, namespace=NAMESPACE)

    async def _machine(self, name: str) -> Machine | None:
        try:
            return await self._sim.client.get(MACHINES, name, namespace=NAMESPACE)
        except NotFound:
            return None

    async def _may_go(self, name: str) -> bool:
        machine, node = await self._machine(name), await self._node(name)
        return (
            machine is not None
            and node is not None
            and machine.metadata.deletion_timestamp is None
            and machine.phase != MachinePhase.FAILED
            and ANNOTATION_SCALE_DOWN_DISABLED not in node.metadata.annotations
        )

    async def _node(self, machine_name: str) -> Node | None:
        machine = await self._machine(machine_name)
        if machine is None or not machine.node_name:
            return None
        try:
            return await self._sim.client.get(NODES, machine.node_name)
        except NotFound:
            return None

    async def _taint(self, name: str) -> None:
        taint: JSONObject = {"key": TO_BE_DELETED, "value": "1", "effect": "NoSchedule"}
        node = await self._node(name)
        if node is not None:
            await self._write_taints(node, [*_taints(node), taint])

    async def _clean(self, name: str) -> None:
        """It failed to scale down: its own taint is taken back."""
        node = await self._node(name)
        if node is not None:
            await self._write_taints(node, _taints(node))

    async def _write_taints(self, node: Node, taints: list[JSONObject]) -> None:
        change: JSONObject = {"spec": {"taints": [*taints]}}
        try:
            await self._sim.client.patch(NODES, node.metadata.name, change)
        except NotFound:
            return

    async def _cordon(self, name: str) -> None:
        node = await self._node(name)
        if node is None or ANNOTATION_SCALE_DOWN_DISABLED in node.metadata.annotations:
            return
        try:
            await self._sim.client.patch(
                NODES, node.metadata.name, {"spec": {"unschedulable": True}}
            )
        except NotFound:
            return


def _entries(deployment: MachineDeployment) -> list[str]:
    text = deployment.metadata.annotations.get(ANNOTATION_TRIGGER_DELETION, "")
    return [entry for entry in text.split(",") if entry]


def _listed(deployment: MachineDeployment) -> set[str]:
    return {entry.partition("~")[0] for entry in _entries(deployment)}


def _is_settled(deployment: MachineDeployment) -> bool:
    """Whether it takes the deployment for updated; a paused one counts as that, too."""
    for condition in deployment.status.conditions:
        if condition.type == "Progressing":
            return condition.reason in ("NewMachineSetAvailable", "DeploymentPaused")
    return True


def _taints(node: Node) -> list[JSONObject]:
    return [
        {"key": t.key, "value": t.value, "effect": t.effect}
        for t in node.spec.taints
        if t.key != TO_BE_DELETED
    ]
