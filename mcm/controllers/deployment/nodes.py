"""What an update writes on Nodes: the PreferNoSchedule taint, and the autoscaler's annotations.

The taint keeps new pods off old machines; the annotations keep the cluster autoscaler from taking
machines away in the middle. Wanted states follow from the sets alone, so nodes that join late are
marked as well and nothing is written twice. The autoscaler's annotation is ours to remove only
where the ``-by-mcm`` annotation says that we set it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, final

from mcm.api.codec import to_json_object
from mcm.api.core import NODES, Node, Taint
from mcm.api.labels import is_label_value
from mcm.api.machine import Machine, MachineDeploymentStatus, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_PREFER_NO_SCHEDULE,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_UPDATE_TO_SET,
    EFFECT_PREFER_NO_SCHEDULE,
    LABEL_VALUE_TRUE,
    TAINT_PREFER_NO_SCHEDULE,
)
from mcm.client.errors import KubeError
from mcm.client.verbs import ObjectWriter
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.in_place_update.node_marks import (
    CRITICAL_COMPONENTS_NOT_READY,
    NO_UPDATE,
    NodeUpdate,
    cleared,
    node_update,
)
from mcm.controllers.deployment.in_place_update.standing import UpdateView
from mcm.controllers.deployment.status.progress import is_complete
from mcm.controllers.fanout import patch_each
from mcm.controllers.node_ownership import NodeOwners, is_managed, is_named
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.replicas.deletion_order import preserved_until
from mcm.controllers.rollouts import KEPT_FROM_AUTOSCALER, keeping_annotations

PREFER_NO_SCHEDULE: Final = Taint(
    key=TAINT_PREFER_NO_SCHEDULE, value=LABEL_VALUE_TRUE, effect=EFFECT_PREFER_NO_SCHEDULE
)


@final
@dataclass(frozen=True, slots=True)
class NodeMarks:
    """What the nodes of a set should bear; None: whatever they bear is right."""

    tainted: bool | None = None
    kept_from_autoscaler: bool | None = None


def has_tainted_nodes(machine_set: MachineSet) -> bool:
    """Tell whether the set says that its nodes were, or are about to be, tainted."""
    return ANNOTATION_PREFER_NO_SCHEDULE in machine_set.metadata.annotations


def marks_for(
    machine_set: MachineSet,
    *,
    is_new: bool,
    tainting: bool,
    updating: bool,
    complete: bool,
    annotating: bool,
) -> NodeMarks:
    """Say what the nodes of one set should bear.

    ``tainting``: the strategy is one that replaces machines little by little. ``updating``: old
    sets have machines left. ``complete``: nothing is left to do. ``annotating``: the flag.
    """
    tainted = None
    if is_new and (complete or has_tainted_nodes(machine_set)):
        tainted = False  # the Go original taints nodes before it leaves word of that
    elif not is_new and tainting:
        tainted = True
    kept = None
    if annotating and (updating or complete):
        kept = updating
    return NodeMarks(tainted, kept)


def node_changes(
    wanted: Iterable[tuple[NodeMarks, Sequence[Machine]]],
    find: Callable[[Machine], Node | None],
    *,
    update: Callable[[Machine], NodeUpdate] | None = None,
) -> Iterator[tuple[Node, JSONObject]]:
    """Yield the nodes that bear something else than they should, each with its merge patch.

    ``find`` returns a machine's own Node; that of one that goes bears what it bears. ``update``
    says what changes on it as the machine is updated in place; without it, none of them is.
    """
    for marks, machines in wanted:
        if marks == NodeMarks() and update is None:
            continue
        for machine in machines:
            node = find(machine)
            if node is None:
                continue
            of_update = update(machine) if update is not None else _left_over(node)
            going = machine.metadata.deletion_timestamp is not None
            if change := _change(NodeMarks() if going else marks, machine, node, of_update):
                yield node, change


def _left_over(node: Node) -> NodeUpdate:
    """Marks of an update in place which a deployment began, and which nobody wants any more."""
    return cleared(node) if ANNOTATION_UPDATE_TO_SET in node.metadata.annotations else NO_UPDATE


def _change(
    marks: NodeMarks, machine: Machine, node: Node, update: NodeUpdate = NO_UPDATE
) -> JSONObject:
    metadata: JSONObject = {}
    kept = _annotation_change(marks.kept_from_autoscaler, machine, node)
    if annotations := {**kept, **update.annotations}:
        metadata["annotations"] = annotations
    if update.labels:
        metadata["labels"] = dict(update.labels)
    spec: JSONObject = {"unschedulable": None} if update.uncordons else {}
    tainted = marks.tainted if not (update.returns and marks.tainted is None) else False
    taints = _taints(tainted, node)
    if update.returns and CRITICAL_COMPONENTS_NOT_READY not in taints:
        taints = (*taints, CRITICAL_COMPONENTS_NOT_READY)
    if taints != node.spec.taints:
        spec["taints"] = [to_json_object(t) for t in taints] or None
    return {**({"metadata": metadata} if metadata else {}), **({"spec": spec} if spec else {})}


def _taints(tainted: bool | None, node: Node) -> tuple[Taint, ...]:
    if tainted is None:
        return node.spec.taints
    ours = (PREFER_NO_SCHEDULE.key, PREFER_NO_SCHEDULE.effect)
    present = [t for t in node.spec.taints if (t.key, t.effect) == ours]
    others = tuple(t for t in node.spec.taints if (t.key, t.effect) != ours)
    if not tainted:
        return others
    if present and present[0].value == PREFER_NO_SCHEDULE.value:
        return node.spec.taints
    return (*others, PREFER_NO_SCHEDULE)


def _annotation_change(kept: bool | None, machine: Machine, node: Node) -> Mapping[str, str | None]:
    present = node.metadata.annotations
    if kept is None:
        return {}
    if kept:
        return {} if _awaits_its_machine(node, machine) else dict(keeping_annotations(node))
    by_us = ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM in present
    if by_us and preserved_until(machine) is None:
        return {key: None for key in KEPT_FROM_AUTOSCALER if key in present}
    return {}


def _awaits_its_machine(node: Node, machine: Machine) -> bool:
    """Tell whether the machine's first write on a Node that joins is still to come."""
    nameable = is_label_value(machine.metadata.name)
    return nameable and is_managed(node) and not is_named(node, machine)


# ---- the act -------------------------------------------------------------------------------------


@final
class NodeMarker:
    """All writes to Nodes that deployments make. ``annotating``: the autoscaler flag."""

    def __init__(self, owners: NodeOwners, writer: ObjectWriter, *, annotating: bool) -> None:
        self._owners = owners
        self._writer = writer
        self._annotating = annotating

    async def mark(
        self,
        snapshot: DeploymentSnapshot,
        status: MachineDeploymentStatus,
        *,
        updates: UpdateView | None = None,
        select: AbstractSet[str] = frozenset(),
    ) -> Sequence[KubeError]:
        """Write what nodes of the deployment lack or bear too much; one patch a node.

        ``updates`` is where machines stand in an update in place, ``select`` whose turn it is.
        While paused, only what is over is taken off.
        """
        if snapshot.deployment.spec.paused:
            wanted = [(NodeMarks(), snapshot.machines[s.metadata.uid]) for s in snapshot.sets]
        else:
            wanted = self._wanted(snapshot, status)

        if updates is None:
            changes = node_changes(wanted, self._owners.own_node)
        else:
            members = updates.members
            changes = node_changes(
                wanted,
                lambda machine: members[machine.metadata.name].node,
                update=lambda machine: node_update(
                    updates,
                    members[machine.metadata.name],
                    select=machine.metadata.name in select,
                ),
            )
        pairs = ((node.metadata, change) for node, change in changes)
        return await patch_each(self._writer, NODES, pairs, bound=for_this_version)

    def _wanted(
        self, snapshot: DeploymentSnapshot, status: MachineDeploymentStatus
    ) -> list[tuple[NodeMarks, Sequence[Machine]]]:
        updating = snapshot.new is not None and snapshot.updating
        complete = is_complete(status, snapshot.deployment)
        return [
            (
                marks_for(
                    s,
                    is_new=s is snapshot.new,
                    tainting=snapshot.taints_old_nodes and updating and has_tainted_nodes(s),
                    updating=updating,
                    complete=complete,
                    annotating=self._annotating,
                ),
                snapshot.machines[s.metadata.uid],
            )
            for s in snapshot.sets
        ]
