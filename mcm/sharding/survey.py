"""Counts what every shard has, and finds what belongs to none or to several."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.meta import KubeObject
from mcm.clock import Clock
from mcm.events import EventSink, EventType
from mcm.sharding.membership import wanted_by
from mcm.sharding.metrics import ABANDONED, CONTESTED, OUTSIDE, ShardMetrics
from mcm.sharding.roots import DIVIDED, Roots
from mcm.sharding.shard import Shard, holder_of

log = logging.getLogger(__name__)

_SLICE: Final = 200
"""How many objects are looked at in one go."""

_RESOURCES: Final = {resource.plural: resource for resource in DIVIDED}
_REASONS: Final = {
    OUTSIDE: "OutsideAllShards",
    CONTESTED: "InSeveralShards",
    ABANDONED: "ShardGone",
}


@final
@dataclass(frozen=True, slots=True)
class Misplaced:
    """One object that stands wrongly, why (a reason of the metrics), and in words."""

    plural: str
    obj: KubeObject
    reason: str
    note: str


def misplaced(
    plural: str, obj: KubeObject, roots: Roots, *, shards: Sequence[Shard], alive: frozenset[str]
) -> Iterator[Misplaced]:
    """Yield what is wrong with where ``obj`` belongs, if anything is. ``shards`` are all there are,
    ``alive`` the names of those that work."""
    holder = holder_of(obj.metadata)
    if holder and holder not in alive:
        yield Misplaced(
            plural, obj, ABANDONED, f"Its shard {holder} does not renew its lease; until it does, "
            "nobody looks after this object (docs/high-availability.md says how to move it)",
        )  # fmt: skip
    if obj.metadata.controller_ref() is not None:
        return  # its root is told of
    wanting = wanted_by(shards, roots.standing_of(obj))
    kept = f"shard {holder} goes on with it" if holder else "nobody looks after it"
    if not wanting:
        yield Misplaced(plural, obj, OUTSIDE, f"No shard's selector matches its labels; {kept}")
    elif len(wanting) > 1:
        named = ", ".join(wanting)
        note = f"The selectors of the shards {named} overlap: all match it; {kept}"
        yield Misplaced(plural, obj, CONTESTED, note)


@final
class Survey:
    """Looks at everything that is divided, whenever asked. Tells of each object once as long as it
    stays as it is, and only while the shared duties are ours."""

    def __init__(
        self, us: Shard, roots: Roots, *, events: EventSink, metrics: ShardMetrics, clock: Clock
    ) -> None:
        self._us = us
        self._roots = roots
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self._told: set[tuple[str, str]] = set()

    async def look(self, *, known: Sequence[Shard], alive: Sequence[Shard], telling: bool) -> None:
        """``known`` are the other shards that have leases, ``alive`` those that are not gone. The
        loop turns now and then."""
        self._metrics.shared_duties.set(int(telling))
        shards = (self._us, *known)
        names = frozenset(shard.name for shard in (self._us, *alive))
        found: list[Misplaced] = []
        held = awaited = 0
        for number, (plural, obj) in enumerate(list(self._roots.every())):
            if number % _SLICE == _SLICE - 1:
                await self._clock.sleep(0)
            ours = holder_of(obj.metadata) == self._us.name
            held += ours
            awaited += not ours and self._us.selects(self._roots.standing_of(obj).labels)
            if telling:
                found += misplaced(plural, obj, self._roots, shards=shards, alive=names)
        self._metrics.objects.labels("held").set(held)
        self._metrics.objects.labels("awaited").set(awaited)
        numbers = Counter(each.reason for each in found)
        for reason in _REASONS:
            self._metrics.misplaced.labels(reason).set(numbers[reason])
        told, self._told = self._told, set()
        for each in found:
            self._tell(each, told)

    def _tell(self, each: Misplaced, told: set[tuple[str, str]]) -> None:
        this = (each.obj.metadata.uid, each.note)
        self._told.add(this)
        if this in told or each.obj.metadata.controller_ref() is not None:
            return  # of what is owned its owner tells
        meta = each.obj.metadata
        extra = {"object": f"{each.plural}/{meta.key}", "note": each.note}
        log.warning("not in one shard", extra=extra)
        resource = _RESOURCES[each.plural]
        self._events.event(
            resource,
            each.obj,
            EventType.WARNING,
            _REASONS[each.reason],
            each.note,
        )
