"""What a drain is asked for, how hard it may be by now, and what one pass of it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias, final

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.names import LABEL_FORCE_DRAIN, LABEL_VALUE_TRUE
from mcm.controllers.machine.draining.mark import Mark
from mcm.drain import Force, Mode, mode_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """The record of a drain: everything follows from what is written on objects, so that any
    process can go on with it."""

    start: datetime
    deadline: datetime
    """Until then pods are evicted, afterwards deleted."""
    force_label: str
    """A boolean as text: true deletes pods at once."""
    mark: Mark
    """What keeps new pods off the Node."""
    tolerant: bool = False
    """Once pods are deleted by force, the drain is done whatever came of it."""


@final
@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing is left to wait for. ``refusals``: pods that could not even be deleted by force."""

    force: Force
    refusals: str = ""


@final
@dataclass(frozen=True, slots=True)
class Unfinished:
    """Look again in ``after`` seconds; None: when something happens to pods or budgets.

    ``trouble`` says what will not pass by waiting alone; empty if all goes its way.
    """

    after: float | None
    reason: str
    trouble: str = ""


DrainAnswer: TypeAlias = Drained | Unfinished


def of_a_node_that_stays(
    machine: Machine, *, start: datetime, timeout: timedelta, mark: Mark
) -> DrainRequest:
    """Ask for a drain after which the machine lives on: the label ``force-drain`` hardens it."""
    asked = machine.metadata.labels.get(LABEL_FORCE_DRAIN) == LABEL_VALUE_TRUE
    return DrainRequest(
        start=start,
        deadline=start + timeout,
        force_label=LABEL_VALUE_TRUE if asked else "",
        mark=mark,
    )


def mode_at(now: datetime, request: DrainRequest, machine: Machine, node: Node | None) -> Mode:
    """Decide how hard the drain may be; without a Node the copy of its conditions counts."""
    return mode_of(
        node.status.conditions if node is not None else machine.status.conditions,
        force_label=request.force_label,
        deadline=request.deadline,
        now=now,
    )
