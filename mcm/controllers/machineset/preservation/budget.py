"""Which Failed machines a set keeps without being asked, and which of them it keeps no longer.

At most ``spec.autoPreserveFailedMachineMax``, counted by what the machines themselves say: the
count in the status lags. What somebody said of a machine stands: one that a person keeps takes no
place here, and one that a person gave up, or whose time is over, is not kept again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, final

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_PRESERVE,
    ANNOTATION_PRESERVE,
    CONDITION_PRESERVED,
    PRESERVE_AUTO,
    PRESERVE_VALUES,
    REASON_PRESERVATION_STOPPED,
)
from mcm.controllers.machineset.preservation.protection import could_last_until
from mcm.controllers.replicas.deletion_order import preserved_until
from mcm.controllers.replicas.membership import is_failed, is_terminating
from mcm.controllers.replicas.preserve_request import preserve_request

_EVER: Final = datetime.min.replace(tzinfo=UTC)


class Subject(NamedTuple):
    """A machine and its Node, None where there is none or it is not known."""

    machine: Machine
    node: Node | None


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """``room`` of the ``candidates`` may be kept, the first ones; ``release`` are to be kept no
    longer."""

    room: int = 0
    candidates: tuple[Machine, ...] = ()
    release: tuple[Machine, ...] = ()


def budget_of(
    maximum: int,
    subjects: Iterable[Subject],
    now: datetime,
    *,
    preserve_timeout: timedelta,
    leaving: Collection[str] = (),
    unanswered: Collection[str] = (),
) -> Budget:
    """Compare what a set may keep with what it keeps.

    ``leaving`` names machines that are about to go whatever their state. Those of ``unanswered``
    may be kept already, by a write whose answer got lost: they have the first places.
    """
    kept: list[Machine] = []
    first: list[Machine] = []
    others: list[Machine] = []
    for subject in subjects:
        machine, name = subject.machine, subject.machine.metadata.name
        if is_kept(subject, now):
            kept.append(machine)
        elif name not in leaving and is_candidate(subject, now, preserve_timeout=preserve_timeout):
            (first if name in unanswered else others).append(machine)
    room = max(0, maximum) - len(kept)
    return Budget(
        room=max(0, room),
        candidates=(*_by_age(first)[::-1], *_by_age(others)[::-1]),
        release=tuple(_by_age(kept)[: max(0, -room)]),
    )


def is_concerned(machine: Machine) -> bool:
    """Tell whether the machine may be kept or a candidate, whatever its Node says."""
    return is_failed(machine) or ANNOTATION_PRESERVE in machine.metadata.annotations


def is_kept(subject: Subject, now: datetime) -> bool:
    """Tell whether the machine takes one of the places: by the word of a set, and nobody else's."""
    machine, node = subject
    until = preserved_until(machine)
    return (
        machine.metadata.annotations.get(ANNOTATION_PRESERVE) == PRESERVE_AUTO
        and preserve_request(machine, node) == PRESERVE_AUTO
        and not is_terminating(machine)
        and (until is None or until > now)
    )


def is_candidate(subject: Subject, now: datetime, *, preserve_timeout: timedelta) -> bool:
    """Tell whether the machine failed, and nobody has said anything about keeping it."""
    machine, node = subject
    own = machine.metadata.annotations
    if not is_failed(machine) or preserved_until(machine) is not None:
        return False
    if preserve_request(machine, node) in PRESERVE_VALUES or _speaks(node):
        return False
    if own.get(ANNOTATION_LAST_APPLIED_PRESERVE) and node is not None:
        return False  # somebody took the word off the Node
    end = could_last_until(machine, preserve_timeout)
    return end is not None and end > now and not _was_ended(machine)


def _speaks(node: Node | None) -> bool:
    return node is not None and bool(node.metadata.annotations.get(ANNOTATION_PRESERVE))


def _was_ended(machine: Machine) -> bool:
    """Tell whether the machine was kept since it failed, and that is over."""
    failed_at = machine.status.last_operation.last_update_time
    return any(
        c.type == CONDITION_PRESERVED
        and c.reason == REASON_PRESERVATION_STOPPED
        and (failed_at is None or (c.last_transition_time or failed_at) >= failed_at)
        for c in machine.status.conditions
    )


def _by_age(machines: Sequence[Machine]) -> list[Machine]:
    return sorted(machines, key=lambda m: (m.metadata.creation_timestamp or _EVER, m.metadata.name))


def annotation(value: str | None) -> Mapping[str, object]:
    """Return the change that lets a machine be kept, or takes a set's word for that back."""
    return {"metadata": {"annotations": {ANNOTATION_PRESERVE: value}}}
