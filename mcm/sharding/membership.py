"""Whether a shard takes an object, keeps it, hands it over, or has nothing to do with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from mcm.sharding.shard import Shard


@final
@dataclass(frozen=True, slots=True)
class Standing:
    """Where an object belongs: the labels of its root. ``certain`` is False where an owner that it
    names is not to be seen; then the labels are those of the last one that is."""

    labels: Mapping[str, str]
    certain: bool = True


class Leave(Enum):
    """Nothing is written."""

    KEEP = auto()  # it is ours, and stays so
    OTHERS = auto()  # it is another's, or nobody's whom we want


@final
@dataclass(frozen=True, slots=True)
class Take:
    """Nobody has it, and it belongs to us."""


@final
@dataclass(frozen=True, slots=True)
class HandOver:
    """It is ours, and belongs to another."""

    to: str


Decision = Leave | Take | HandOver


def decide(
    us: Shard, holder: str, standing: Standing, *, deleting: bool, alive: Iterable[Shard]
) -> Decision:
    """Decide about an object that ``holder`` (empty: nobody) looks after.

    ``alive`` are the other shards that work. What is being deleted, or whose place is not certain,
    is finished where it is. What no other shard wants, or several do, stays: it is looked after.
    """
    if holder == "":
        return Take() if us.selects(standing.labels) else Leave.OTHERS
    if holder != us.name:
        return Leave.OTHERS
    if deleting or not standing.certain or us.selects(standing.labels):
        return Leave.KEEP
    takers = [shard for shard in alive if shard.selects(standing.labels)]
    return HandOver(takers[0].name) if len(takers) == 1 else Leave.KEEP


def wanted_by(shards: Iterable[Shard], standing: Standing) -> tuple[str, ...]:
    """Return the names of the shards to which an object belongs: one, if all is well."""
    return tuple(shard.name for shard in shards if shard.selects(standing.labels))
