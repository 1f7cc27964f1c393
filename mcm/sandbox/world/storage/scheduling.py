"""What a pod's volumes have to say on where it may run: pure decisions, upstream's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import final

from mcm.api.quantities import parse_quantity
from mcm.sandbox.world.kinds import (
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from mcm.sandbox.world.storage.classes import provisions
from mcm.sandbox.world.storage.matching import smallest_match
from mcm.sandbox.world.storage.node_affinity import ZONE, in_zone, reachable
from mcm.sandbox.world.storage.provisioning import SELECTED_NODE, allowed_zones

DEFAULT_LIMIT = 128
"""How many volumes of one driver a Node takes that does not say."""
_LIMIT = "attachable-volumes-csi-"

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
UNREACHABLE = "node(s) had volume node affinity conflict"
OTHER_ZONE = "node(s) had no available volume zone"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
TOO_MANY = "node(s) exceed max volume count"
ONE_POD_ONLY = (
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
)


@final
@dataclass(frozen=True, slots=True)
class Unbound:
    """A claim that waits for its first consumer; ``reserved`` is the volume it will get, else
    ``volumes`` are those it might get."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass | None = None
    volumes: Sequence[PersistentVolume] = ()
    reserved: PersistentVolume | None = None

    @property
    def driver(self) -> str:
        """Whose volume will be made for it; empty if that is not known."""
        known = self.storage_class is not None and provisions(self.storage_class)
        return self.storage_class.provisioner if self.storage_class is not None and known else ""

    def is_prepared_for(self, node_name: str) -> bool:
        chosen = self.claim.metadata.annotations.get(SELECTED_NODE)
        return self.reserved is not None or (bool(node_name) and chosen == node_name)

    def match(self, node: Node) -> PersistentVolume | None:
        """Return the free volume that the claim would get on this Node."""
        return smallest_match(self.claim, self.volumes, node)

    def fits(self, node: Node) -> bool:
        if self.reserved is not None:
            return reachable(self.reserved, node)
        return self.match(node) is not None or self._could_be_made(node)

    def _could_be_made(self, node: Node) -> bool:
        if self.storage_class is None or not self.driver:
            return False
        zones = allowed_zones(self.storage_class)
        return not zones or node.metadata.labels.get(ZONE, "") in zones


@final
@dataclass(frozen=True, slots=True)
class VolumeNeeds:
    """What placing a pod must heed. ``problem`` bars it from every Node; ``taken``: a claim of its
    is for one pod alone, and another has it. ``selected`` is the Node that volumes are being made
    for. ``used_by`` tells the volumes that some pods use: attached name to driver."""

    problem: str = ""
    taken: bool = False
    bound: tuple[PersistentVolume, ...] = ()
    unbound: tuple[Unbound, ...] = ()
    selected: str = ""
    used_by: Callable[[Sequence[Pod]], Mapping[str, str]] = lambda _: {}

    def is_prepared_for(self, node_name: str) -> bool:
        """Tell whether nothing is left to do but to wait until claims are bound for this Node."""
        return bool(self.unbound) and all(
            claim.is_prepared_for(node_name) for claim in self.unbound
        )

    def obstacle(self, node: Node, pods: Sequence[Pod]) -> str:
        """Say why the pod's volumes keep it off a Node with these pods; empty if they do not."""
        if self.taken:
            return ONE_POD_ONLY
        if not all(reachable(volume, node) for volume in self.bound):
            return UNREACHABLE
        if not all(in_zone(volume, node) for volume in self.bound):
            return OTHER_ZONE
        if not all(claim.fits(node) for claim in self.unbound):
            return NOTHING_TO_BIND
        return TOO_MANY if self._exceeds(node, pods) else ""

    def _exceeds(self, node: Node, pods: Sequence[Pod]) -> bool:
        wanted = attached_names(self.bound)
        coming = Counter(u.driver for u in self.unbound if u.driver)
        if not wanted and not coming:
            return False
        fewest = min(volume_limit(node, d) for d in {*coming, *wanted.values()})
        if sum(len(p.spec.volumes) for p in pods) + len(wanted) + coming.total() <= fewest:
            return False  # the usual case, without a look at a single claim
        there = self.used_by(pods)
        coming.update(driver for name, driver in wanted.items() if name not in there)
        counts = Counter(there.values())
        return any(counts[d] + more > volume_limit(node, d) for d, more in coming.items())


NO_NEEDS = VolumeNeeds()


def attached_names(volumes: Iterable[PersistentVolume]) -> dict[str, str]:
    """Return the attached name and the driver of those that need attaching."""
    return {
        volume.attached_name: volume.spec.csi.driver
        for volume in volumes
        if volume.attached_name and volume.spec.csi is not None
    }


def volume_limit(node: Node, driver: str) -> int:
    offered = node.status.allocatable or node.status.capacity
    quantity = offered.get(_LIMIT + driver, DEFAULT_LIMIT)
    try:
        limit = parse_quantity(quantity if isinstance(quantity, int) else str(quantity))
    except ValueError:
        limit = Decimal(0)
    return int(limit)
