"""From how many machines on a set is frozen, and at how many that ends.

Of a deployment's set: at the deployment's replicas, its surge and ``--safety-up``; of a set by
itself, at twice its replicas and ``--safety-up``. It ends ``--safety-down`` below that. Whatever
the flags are, the two numbers never meet; with the machines that are wanted no set is frozen, and a
frozen one, which can but delete, is unfrozen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

from mcm.api.machine import MACHINE_DEPLOYMENTS, MachineDeployment, MachineSet
from mcm.api.strategies import surge_of
from mcm.api.validation import validate_machine_deployment, validate_machine_set
from mcm.controllers.settings import ControllerSettings
from mcm.informers.store import Store


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """A set is frozen once it has ``freeze_at`` machines, and unfrozen once it has ``unfreeze_at``,
    those included which are leaving."""

    freeze_at: int
    unfreeze_at: int


@final
@dataclass(frozen=True, slots=True)
class Margins:
    """The flags: ``up`` machines above what may be there freeze, ``down`` below that unfreeze."""

    up: int
    down: int

    @classmethod
    def of(cls, settings: ControllerSettings) -> Self:
        return cls(settings.safety_up, settings.safety_down)

    def of_set(self, replicas: int) -> Limits:
        """Return the limits of a set that no deployment owns."""
        return self._limits(2 * replicas + self.up, wanted=replicas)

    def of_deployment(self, replicas: int, surge: int) -> Limits:
        """Return the limits of each set of a deployment."""
        return self._limits(replicas + surge + self.up, wanted=replicas)

    def _limits(self, high: int, *, wanted: int) -> Limits:
        freeze_at = max(high, wanted + 1)
        return Limits(freeze_at, min(freeze_at - 1, max(high - self.down, wanted)))


@final
class SetLimits:
    """The limits of sets, by what ``deployments`` shows of their owners."""

    def __init__(self, deployments: Store[MachineDeployment], margins: Margins) -> None:
        self._deployments = deployments
        self._margins = margins

    def of(self, machine_set: MachineSet) -> Limits | None:
        """Return the limits, None as long as the numbers they follow from cannot be read."""
        ref = machine_set.metadata.controller_ref()
        if ref is None or ref.kind != MACHINE_DEPLOYMENTS.kind:
            return self._of_its_own(machine_set)
        key = f"{machine_set.metadata.namespace}/{ref.name}"
        if key in self._deployments.unreadable:
            return None
        deployment = self._deployments.get(key)
        if deployment is None or deployment.metadata.uid != ref.uid:
            return self._of_its_own(machine_set)
        return self.in_deployment(deployment)

    def in_deployment(self, deployment: MachineDeployment) -> Limits | None:
        """Return the limits of each set of ``deployment``, None if its spec is not valid."""
        if validate_machine_deployment(deployment, max_replicas=0):
            return None
        spec = deployment.spec
        return self._margins.of_deployment(spec.replicas, surge_of(spec))

    def _of_its_own(self, machine_set: MachineSet) -> Limits | None:
        if validate_machine_set(machine_set, max_replicas=0):
            return None
        return self._margins.of_set(machine_set.spec.replicas)
