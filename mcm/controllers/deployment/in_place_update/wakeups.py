"""Which changes of machines and Nodes wake the deployment that updates them in place.

Most of what it counts reaches it through its sets' statuses. How far an update is does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mcm.api.core import Node
from mcm.api.machine import Machine, MachineDeployment, MachinePhase, MachineSet
from mcm.api.names import (
    ANNOTATION_UPDATE_FAILED_REASON,
    ANNOTATION_UPDATE_TO_SET,
    CONDITION_IN_PLACE_UPDATE,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    STRATEGY_IN_PLACE_UPDATE,
)
from mcm.controllers.deployment.fleet import OWNERSHIP as OF_SETS
from mcm.controllers.in_place_marks import in_place_condition
from mcm.controllers.node_ownership import NodeOwners
from mcm.controllers.replicas.membership import is_pinned
from mcm.informers import Change, Store

_PHASES: Final = frozenset(
    {
        MachinePhase.IN_PLACE_UPDATING,
        MachinePhase.IN_PLACE_UPDATE_SUCCESSFUL,
        MachinePhase.IN_PLACE_UPDATE_FAILED,
    }
)
_LABELS: Final = (LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT)
_ANNOTATIONS: Final = (ANNOTATION_UPDATE_FAILED_REASON, ANNOTATION_UPDATE_TO_SET)
_NOTHING: Final = (None,) * 3


class Deployments:
    """Finds the deployment of a machine, through the set that controls it."""

    def __init__(self, deployments: Store[MachineDeployment], sets: Store[MachineSet]) -> None:
        self._deployments = deployments
        self._sets = sets

    def of(self, machine: Machine) -> MachineDeployment | None:
        owner = machine.metadata.controller_ref()
        machine_set = (
            self._sets.get(f"{machine.metadata.namespace}/{owner.name}") if owner else None
        )
        if owner is None or machine_set is None or machine_set.metadata.uid != owner.uid:
            return None
        above = machine_set.metadata.controller_ref()
        if above is None or above.kind != OF_SETS.owner.kind:
            return None
        found = self._deployments.get(f"{machine.metadata.namespace}/{above.name}")
        return found if found is not None and found.metadata.uid == above.uid else None


def keys_of_machine_change(change: Change[Machine], deployments: Deployments) -> Iterable[str]:
    """Return the deployment of a machine whose update got on."""
    old, new = change.old, change.new
    if new is None or change.resync or _of_machine(old) == _of_machine(new):
        return ()
    deployment = deployments.of(new)
    return (deployment.metadata.key,) if deployment is not None else ()


def keys_of_node_change(
    change: Change[Node], owners: NodeOwners, deployments: Deployments
) -> Iterator[str]:
    """Yield the deployments of the machines whose Node's marks changed; a Node that is new is news
    to those that update in place."""
    old, new = change.old, change.new
    if new is None or change.resync:
        return
    marked = _of_node(new)
    if old is not None and _of_node(old) == marked:
        return
    for machine in owners.claimants(new):
        deployment = deployments.of(machine)
        if deployment is None:
            continue
        in_place = deployment.spec.strategy.type == STRATEGY_IN_PLACE_UPDATE
        if in_place or old is not None or marked != _NOTHING:
            yield deployment.metadata.key


def _of_machine(machine: Machine | None) -> tuple[object, ...]:
    if machine is None:
        return _NOTHING
    reason = next(
        (c.reason for c in machine.status.conditions if c.type == CONDITION_IN_PLACE_UPDATE), None
    )
    phase = machine.phase if machine.phase in _PHASES else None
    return phase, reason, is_pinned(machine) or None


def _of_node(node: Node) -> tuple[object, ...]:
    labels, annotations = node.metadata.labels, node.metadata.annotations
    condition = in_place_condition(node)
    return (
        tuple(labels.get(name) for name in _LABELS) if any(n in labels for n in _LABELS) else None,
        tuple(annotations.get(n) for n in _ANNOTATIONS)
        if any(n in annotations for n in _ANNOTATIONS)
        else None,
        condition.reason if condition is not None else None,
    )
