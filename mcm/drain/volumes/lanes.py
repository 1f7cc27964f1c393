"""Which pods with exclusively attached volumes may be on their way at a time, per attacher."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

from mcm.drain.volumes.handover import Handover
from mcm.drain.volumes.holding import Holding
from mcm.drain.volumes.node_volumes import NodeVolumes, Unit, unit_of


@final
class Lanes:
    """The lanes of one Node's drain, in one pass.

    Pods that share an exclusive volume are one unit: it is over when all of them are gone, so the
    second goes along with the first. A unit takes a place in the lanes of all its attachers, or in
    none: nobody holds one lane while it waits for another.
    """

    def __init__(
        self, handovers: Iterable[Handover], view: NodeVolumes, width: Callable[[str], int]
    ) -> None:
        self._width = width
        self._groups = _Groups()
        under_way = [unit_of(h.volumes) for h in handovers if not h.over]
        for unit in (*view.units(), *under_way):
            self._groups.add(unit)
        self._held: dict[str, set[str]] = {}
        for unit in under_way:
            self._take(unit)

    def admits(self, holdings: Iterable[Holding]) -> bool:
        """Tell whether a pod with these exclusive volumes may be asked to leave now."""
        unit = unit_of(holdings)
        return all(self._has_room(attacher, unit) for attacher in self._lanes_of(unit))

    def take(self, holdings: Iterable[Holding]) -> None:
        """Give the pod's unit its places: it was asked, or is about to be."""
        self._take(unit_of(holdings))

    def held(self, attacher: str) -> int:
        """Return how many units are on their way in that lane."""
        return len(self._held.get(attacher, ()))

    def _take(self, unit: Unit) -> None:
        for attacher in self._lanes_of(unit):
            self._held.setdefault(attacher, set()).add(self._groups.root_of(unit))

    def _has_room(self, attacher: str, unit: Unit) -> bool:
        held = self._held.get(attacher, set())
        return self._groups.root_of(unit) in held or len(held) < max(1, self._width(attacher))

    def _lanes_of(self, unit: Unit) -> frozenset[str]:
        """Return the lanes of all with which it shares volumes, not of the pod alone."""
        return self._groups.attachers_of(unit) | unit.attachers


@final
class _Groups:
    """Volumes that are held together, through however many pods."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._attachers: dict[str, frozenset[str]] = {}

    def add(self, unit: Unit) -> None:
        roots = sorted({self._root(volume) for volume in unit.volumes})
        if not roots:
            return
        together = unit.attachers.union(*(self._attachers.get(r, frozenset()) for r in roots))
        for root in roots[1:]:
            self._parent[root] = roots[0]
        self._attachers[roots[0]] = together

    def root_of(self, unit: Unit) -> str:
        return self._root(min(unit.volumes)) if unit.volumes else ""

    def attachers_of(self, unit: Unit) -> frozenset[str]:
        return self._attachers.get(self.root_of(unit), frozenset())

    def _root(self, volume: str) -> str:
        parent = self._parent.setdefault(volume, volume)
        while parent != self._parent[parent]:
            parent = self._parent[parent]
        self._parent[volume] = parent
        return parent
