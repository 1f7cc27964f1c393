"""Whether a deployment is replacing its machines, and what their Nodes bear meanwhile.

The cluster autoscaler is not to take machines away in the middle. A Node that joins bears the word
of that from its machine's first write on; others get it, and all lose it, by their deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from mcm.api.core import Node
from mcm.api.machine import Machine, MachineDeployment, MachineSet
from mcm.api.names import (
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    SCALE_DOWN_DISABLED_VALUE,
)
from mcm.controllers.owning import children_of, count_children, index_by_owner
from mcm.informers.store import Store

KEPT_FROM_AUTOSCALER: Final = {
    ANNOTATION_SCALE_DOWN_DISABLED: SCALE_DOWN_DISABLED_VALUE,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: SCALE_DOWN_DISABLED_VALUE,
}


def keeping_annotations(node: Node) -> Mapping[str, str]:
    """Return the annotations that ``node`` lacks to be kept from the autoscaler; none where it is
    kept by somebody else, whose wish is for longer than this rollout."""
    present = node.metadata.annotations
    if present.get(ANNOTATION_SCALE_DOWN_DISABLED) == SCALE_DOWN_DISABLED_VALUE:
        return {}
    return {k: v for k, v in KEPT_FROM_AUTOSCALER.items() if present.get(k) != v}


@final
class Rollouts:
    """Reads the stores; costs as much as a deployment has sets."""

    def __init__(
        self,
        machines: Store[Machine],
        sets: Store[MachineSet],
        deployments: Store[MachineDeployment],
    ) -> None:
        index_by_owner(machines)
        index_by_owner(sets)
        self._machines = machines
        self._sets = sets
        self._deployments = deployments

    def concern(self, machine: Machine) -> bool:
        """Tell whether the deployment of ``machine`` has, or wants, machines in another set as
        well, and is not paused."""
        namespace, owner = machine.metadata.namespace, machine.metadata.controller_ref()
        own = self._sets.get(f"{namespace}/{owner.name}") if owner is not None else None
        if own is None or owner is None or own.metadata.uid != owner.uid:
            return False
        owner = own.metadata.controller_ref()
        found = self._deployments.get(f"{namespace}/{owner.name}") if owner is not None else None
        if found is None or owner is None or found.metadata.uid != owner.uid or found.spec.paused:
            return False
        return any(
            s.metadata.uid != own.metadata.uid
            and (s.spec.replicas or count_children(self._machines, s.metadata.uid))
            for s in children_of(self._sets, owner.uid)
        )
