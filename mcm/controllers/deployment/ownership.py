"""MachineDeployments own MachineSets: what the owning engine must know of the two."""

from __future__ import annotations

from typing import Final

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS
from mcm.controllers.owning import Ownership

OWNERSHIP: Final = Ownership(
    owner=MACHINE_DEPLOYMENTS,
    child=MACHINE_SETS,
    selector=lambda deployment: deployment.spec.selector,
    noun="machine set",
)
"""Machines need no way of their own to a deployment: whatever counts of them shows in the status of
their set."""
