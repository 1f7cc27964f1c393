"""Which sets cannot get their machines up, since when, and what the machines say of it.

A set begins to fail in a rollout (or before it was ever complete) once a machine of it was given
up, or is refused for a reason that time alone does not mend, while none of the set serves; or once
two are, whatever the others do. It fails until all of its machines have joined and one serves. The
machines that tell of it are replaced meanwhile, so the set bears notes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

from mcm.api.machine import Machine, MachineSet
from mcm.api.names import ANNOTATION_COMPLETED, ANNOTATION_FAILING_SINCE
from mcm.api.timestamps import parse_rfc3339, whole_seconds
from mcm.controllers.replicas.availability import is_available, min_ready_of
from mcm.controllers.replicas.joining import fails_to_come_up, has_never_joined
from mcm.controllers.replicas.membership import is_terminating
from mcm.controllers.replicas.startup_note import read_note

HELD: Final = "Nothing that works is taken from the former template meanwhile."
UNTIL: Final = (
    "This ends when all its machines have joined, or with another template: mend what they say, "
    "or take the former template back."
)
"""Both are said while the failure lasts, after what failed."""
_ENOUGH: Final = 2
"""So many machines that fail are no accident of one."""


@final
@dataclass(frozen=True, slots=True)
class StartupFailure:
    """A machine that does not come up, and what it says of it."""

    machine: str
    code: str
    text: str


def was_complete(machine_set: MachineSet) -> bool:
    """Tell whether all machines of its deployment were the set's once, and served."""
    return ANNOTATION_COMPLETED in machine_set.metadata.annotations


def noted_failing_since(machine_set: MachineSet) -> datetime | None:
    """Return since when the set fails as it says itself; None if it does not say so."""
    text = machine_set.metadata.annotations.get(ANNOTATION_FAILING_SINCE)
    try:
        return parse_rfc3339(text) if text else None
    except ValueError:
        return None


def failing_since(
    machine_set: MachineSet, machines: Sequence[Machine], now: datetime, *, rolling: bool
) -> datetime | None:
    """Return since when the set cannot get its machines up; None if it can, as far as is known.

    ``rolling``: it is not one that was complete, and only loses and gets machines since.
    """
    staying = [m for m in machines if not is_terminating(m)]
    if machine_set.spec.replicas == 0 and not staying:
        return None
    min_ready = min_ready_of(machine_set)
    serving = sum([is_available(m, min_ready, now) for m in staying])
    if serving and not any(map(has_never_joined, staying)):
        return None
    if (noted := noted_failing_since(machine_set)) is not None:
        return noted
    if rolling and _count(machine_set, staying) >= (_ENOUGH if serving else 1):
        return whole_seconds(now)
    return None


def startup_failures(
    machine_set: MachineSet, machines: Sequence[Machine]
) -> Sequence[StartupFailure]:
    """Return what the set's machines say that fail now, or what the last one that did said."""
    failing = [m for m in machines if not is_terminating(m) and fails_to_come_up(m)]
    if failing:
        said = ((m.metadata.name, m.status.last_operation) for m in failing)
        return tuple(StartupFailure(n, o.error_code, o.description) for n, o in sorted(said))
    note = read_note(machine_set)
    return (StartupFailure(note.machine, note.code, note.text),) if note else ()


def _count(machine_set: MachineSet, staying: Sequence[Machine]) -> int:
    """How many fail now, or failed before, none having worked since."""
    failing = {m.metadata.name for m in staying if fails_to_come_up(m)}
    note = read_note(machine_set)
    if note is None:
        return len(failing)
    return len(failing) + note.count - (note.machine in failing)


def without_advice(message: str) -> str:
    """Return what a message said of a failure, without what it said of the time until its end."""
    return message.partition(HELD)[0].partition(UNTIL)[0].rstrip()
