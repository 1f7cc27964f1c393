"""Which deployments share a surge pool, and which of them a change concerns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from mcm.api.machine import MachineDeployment, MachineSet
from mcm.api.names import ANNOTATION_SURGE_POOL
from mcm.controllers.owning.triggers import same_but_for_status
from mcm.informers import Change
from mcm.informers.store import Store

_BY_POOL: Final = "deployments by surge pool"


def pool_of(deployment: MachineDeployment) -> str:
    """Return the pool's name; empty if the deployment names none, or is being deleted."""
    if deployment.metadata.deletion_timestamp is not None:
        return ""
    return deployment.metadata.annotations.get(ANNOTATION_SURGE_POOL, "").strip()


def index_by_pool(deployments: Store[MachineDeployment]) -> None:
    """Make ``others_of`` work on ``deployments``; may be called more than once."""
    deployments.ensure_index(_BY_POOL, _pool_keys)


def others_of(
    deployment: MachineDeployment, deployments: Store[MachineDeployment]
) -> Sequence[MachineDeployment]:
    """Return the other members of the deployment's pool, by name; none if it is of no pool."""
    own = deployment.metadata.key
    found = (d for key in _pool_keys(deployment) for d in deployments.by_index(_BY_POOL, key))
    return sorted((d for d in found if d.metadata.key != own), key=lambda d: d.metadata.name)


def concerned_by_member(
    change: Change[MachineDeployment], deployments: Store[MachineDeployment]
) -> Iterable[str]:
    """Return the keys of those with whom the deployment shares, or shared, a pool."""
    old, new = change.old, change.new
    if change.resync or (old and new and same_but_for_status(old, new)):
        return ()
    seen = (d for d in (old, new) if d is not None)
    return dict.fromkeys(o.metadata.key for d in seen for o in others_of(d, deployments))


def concerned_by_set(
    change: Change[MachineSet], deployments: Store[MachineDeployment]
) -> Iterable[str]:
    """Return the keys of those who share a pool with the set's deployment: what is left for them
    may be another amount now."""
    meta = change.object.metadata
    ref = None if change.resync else meta.controller_ref()
    owner = deployments.get(f"{meta.namespace}/{ref.name}") if ref else None
    if owner is None or ref is None or owner.metadata.uid != ref.uid:
        return ()
    return tuple(other.metadata.key for other in others_of(owner, deployments))


def _pool_keys(deployment: MachineDeployment) -> Iterable[str]:
    pool = pool_of(deployment)
    return (f"{deployment.metadata.namespace}/{pool}",) if pool else ()
