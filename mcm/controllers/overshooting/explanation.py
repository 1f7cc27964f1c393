"""What conditions ``Frozen``, and the events of freezing and unfreezing, say to people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Self, final

from mcm.api.machine import Machine, MachineSet
from mcm.api.names import ANNOTATION_UNFREEZE
from mcm.api.timestamps import rfc3339
from mcm.controllers.overshooting.limits import Limits
from mcm.controllers.replicas.membership import is_terminating


@final
@dataclass(frozen=True, slots=True)
class Situation:
    """A set, or all of its numbers that freezing turns on: ``wanted`` replicas, machines that are
    ``there`` to stay, and those that are ``leaving``."""

    name: str
    wanted: int
    there: int
    leaving: int
    limits: Limits | None

    @classmethod
    def of(
        cls, machine_set: MachineSet, machines: Iterable[Machine], limits: Limits | None
    ) -> Self:
        everyone = tuple(machines)
        leaving = sum(map(is_terminating, everyone))
        wanted, there = machine_set.spec.replicas, len(everyone) - leaving
        return cls(machine_set.metadata.name, wanted, there, leaving, limits)

    @property
    def machines(self) -> int:
        return self.there + self.leaving

    @property
    def lacks(self) -> int:
        """How many machines would be made, were the set not frozen."""
        return max(0, self.wanted - self.there)


def why_frozen(of: Situation, since: datetime) -> str:
    """Say of a frozen set what it lacks, since when it is frozen and why, and what ends it."""
    return (
        f"{_machines(of.wanted)} wanted, {of.there} there, {of.leaving} leaving; none is made. "
        f"Frozen since {rfc3339(since)}: {_reason(of.limits)}. {_end(of.limits)}, when the "
        f"annotation {ANNOTATION_UNFREEZE} is set here or on the deployment, or when the label "
        "freeze is taken off"
    )


def why_sets_frozen(sets: Iterable[Situation]) -> str:
    """Say the same of a deployment, set by set."""
    return ". ".join(
        f"MachineSet {s.name}: {_machines(s.wanted)} wanted, {s.there} there, {s.leaving} leaving; "
        f"frozen: {_reason(s.limits)}. {_end(s.limits)}, or when the annotation "
        f"{ANNOTATION_UNFREEZE} is set here"
        for s in sets
    )


def stands_still(new: Situation) -> str:
    """Say why an update does not get on whose new set, of which the rest is said, is frozen."""
    return f"it lacks {_machines(new.lacks)} and is frozen (see the condition Frozen)"


def froze(of: Situation) -> str:
    """Say that a set was just frozen, and until when."""
    if of.limits is None:
        return f"Frozen with {_machines(of.machines)}: {_reason(None)}"
    return (
        f"Frozen with {_machines(of.machines)}, those leaving included: from {of.limits.freeze_at} "
        f"on none is made until {of.limits.unfreeze_at} or fewer are left"
    )


def unfroze(of: Situation) -> str:
    """Say that a set was just unfrozen, and why that may not last."""
    text = f"Unfrozen with {_machines(of.machines)}, those leaving included"
    if of.limits is None:
        return text
    if of.machines <= of.limits.unfreeze_at:
        return f"{text}: {of.limits.unfreeze_at} or fewer end a freeze, whoever set it"
    return f"{text}, by request: frozen again soon if there are {of.limits.freeze_at} or more"


def froze_with(sets: Iterable[str]) -> str:
    """Say that a deployment was just frozen, with those of its ``sets``."""
    return f"Frozen with machine sets {', '.join(sorted(sets))}: see the condition Frozen"


def unfroze_deployment() -> str:
    """Say that a deployment was just unfrozen; also to who labelled it by hand."""
    return (
        "Unfrozen: none of its machine sets is frozen now. The label freeze of a deployment only "
        "shows that one is, and stops nothing by itself; spec.paused does"
    )


def _machines(number: int) -> str:
    return "1 machine" if number == 1 else f"{number} machines"


def _reason(limits: Limits | None) -> str:
    if limits is None:
        return "no limit is known while the spec that it follows from is invalid"
    return f"{limits.freeze_at} or more machines freeze it, those leaving included"


def _end(limits: Limits | None) -> str:
    if limits is None:
        return "Ends by the numbers once that is mended"
    return f"Ends when {limits.unfreeze_at} or fewer are left"
