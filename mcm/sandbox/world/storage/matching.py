"""Which existing volume satisfies a claim: its class, modes, size and labels; the smallest wins."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from mcm.api.quantities import parse_quantity
from mcm.api.selectors import matches
from mcm.sandbox.world.kinds import Node, PersistentVolume, PersistentVolumeClaim, Quantity
from mcm.sandbox.world.storage.classes import class_name
from mcm.sandbox.world.storage.node_affinity import in_zone, reachable


def is_reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether the volume names this claim: by UID, or by name alone as people do."""
    ref = volume.spec.claim_ref
    if ref is None or ref.key != claim.metadata.key:
        return False
    return ref.uid in ("", claim.metadata.uid)


def smallest_match(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], node: Node | None = None
) -> PersistentVolume | None:
    """Return the smallest free volume that satisfies ``claim`` (reachable from ``node``, if one
    is given), by name among equals; None if there is none."""
    fitting = (v for v in volumes if satisfies(v, claim))
    if node is not None:
        fitting = (v for v in fitting if reachable(v, node) and in_zone(v, node))
    return min(fitting, key=lambda v: (_size(v.spec.capacity), v.metadata.name), default=None)


def satisfies(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether nobody has the volume yet and it offers what the claim asks for."""
    offer, wish = volume.spec, claim.spec
    return (
        volume.metadata.deletion_timestamp is None
        and offer.claim_ref is None
        and offer.storage_class_name == class_name(claim)
        and offer.volume_mode == wish.volume_mode
        and {*wish.access_modes} <= {*offer.access_modes}
        and _size(wish.resources.requests) <= _size(offer.capacity)
        and (wish.selector is None or matches(wish.selector, volume.metadata.labels))
    )


def _size(amounts: dict[str, Quantity]) -> Decimal:
    """A quantity nobody can read counts as none."""
    quantity = amounts.get("storage", 0)
    try:
        return parse_quantity(quantity if isinstance(quantity, int) else str(quantity))
    except ValueError:
        return Decimal(0)
