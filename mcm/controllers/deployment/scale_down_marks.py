"""The machines that the cluster autoscaler wants gone.

Together with fewer replicas it writes, on the deployment, a list ``<machine>~<time>,…``. Each
machine of it gets a priority and a time, by which its set deletes it first. Entries that have done
their work, or never can, are taken out of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import final

from mcm.api.machine import Machine, MachineDeployment
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_TRIGGER_DELETION,
    PRIORITY_DELETE_FIRST,
)
from mcm.api.timestamps import parse_rfc3339, rfc3339
from mcm.controllers.replicas.membership import is_failed, is_terminating


@final
@dataclass(frozen=True, slots=True)
class Marks:
    """``machines`` with the change each needs; ``change`` of the deployment's list, if any."""

    machines: tuple[tuple[Machine, JSONObject], ...] = ()
    change: JSONObject | None = None


def plan(
    deployment: MachineDeployment, find: Callable[[str], Machine | None], now: datetime
) -> Marks:
    """Read the list. ``find`` returns the deployment's machine of a name, None if it has none."""
    annotations = deployment.metadata.annotations
    text = annotations.get(ANNOTATION_TRIGGER_DELETION)
    if text is None:
        return Marks()
    when_unsaid = annotations.get(ANNOTATION_REPLICA_CHANGE_BY_SCALER, rfc3339(now))
    pending = {
        name: (machine, time)
        for name, time in _entries(text, when_unsaid)
        if (machine := find(name)) is not None and _is_to_go(machine)
    }
    listed = ",".join(f"{name}~{time}" for name, (_, time) in pending.items()) or None
    kept: JSONObject = {ANNOTATION_TRIGGER_DELETION: listed}
    changes = ((machine, _mark(machine, time)) for machine, time in pending.values())
    return Marks(
        machines=tuple((machine, change) for machine, change in changes if change),
        change={"metadata": {"annotations": kept}} if listed != text else None,
    )


def _entries(text: str, when_unsaid: str) -> Iterator[tuple[str, str]]:
    """Names and times. A name alone is an older form; what else cannot be read is left out."""
    for entry in text.split(","):
        name, separator, time = entry.strip().partition("~")
        time = time if separator else when_unsaid
        if name and _is_time(time):
            yield name, time


def _is_time(text: str) -> bool:
    try:
        parse_rfc3339(text)
    except ValueError:
        return False
    return True


def _is_to_go(machine: Machine) -> bool:
    return not (is_terminating(machine) or is_failed(machine))


def _mark(machine: Machine, time: str) -> JSONObject:
    present: Mapping[str, str] = machine.metadata.annotations
    wanted = {
        ANNOTATION_PRIORITY: PRIORITY_DELETE_FIRST,
        ANNOTATION_MARKED_FOR_DELETION: present.get(ANNOTATION_MARKED_FOR_DELETION, time),
    }
    missing = {key: value for key, value in wanted.items() if present.get(key) != value}
    return {"metadata": {"annotations": missing}} if missing else {}
