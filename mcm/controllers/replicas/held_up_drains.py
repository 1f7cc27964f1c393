"""Which machines of a set or deployment do not go because their drain is held up, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from mcm.api.machine import Machine
from mcm.api.names import CONDITION_DRAINED, REASON_DRAIN_BLOCKED, STATUS_FALSE
from mcm.api.timestamps import rfc3339
from mcm.controllers.conditions import find
from mcm.wording import first_few

_NAMED: Final = 3


def held_up_drains(machines: Iterable[Machine]) -> Sequence[Machine]:
    """Return the machines that say so of themselves, in the order of their names."""
    return sorted(filter(is_held_up, machines), key=lambda machine: machine.metadata.key)


def why_held_up(machines: Sequence[Machine]) -> str:
    """Name the first few of ``machines``, each with what holds it up most, and since when its drain
    takes long; tell where the rest is to be found."""
    count = "1 machine" if len(machines) == 1 else f"{len(machines)} machines"
    texts = first_few([_text(machine) for machine in machines], _NAMED, separator="; ")
    return (
        f"The drain of {count} is held up: {texts}. Each machine's condition {CONDITION_DRAINED} "
        "says more, and when its pods are deleted by force"
    )


def is_held_up(machine: Machine) -> bool:
    """Tell whether the machine says that its drain does not go on by itself."""
    said = find(machine.status.conditions, CONDITION_DRAINED)
    return said is not None and (said.status, said.reason) == (STATUS_FALSE, REASON_DRAIN_BLOCKED)


def worst_of(machine: Machine) -> str:
    """Return what its condition says first: the cause that is to be mended first."""
    said = find(machine.status.conditions, CONDITION_DRAINED)
    return said.message.partition(";")[0] if said is not None else ""


def _text(machine: Machine) -> str:
    said = find(machine.status.conditions, CONDITION_DRAINED)
    since = said.last_transition_time if said is not None else None
    held = f" (draining since {rfc3339(since)})" if since is not None else ""
    return f"{machine.metadata.name}{held}: {worst_of(machine)}"
