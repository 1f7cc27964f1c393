"""Which machines the cluster autoscaler chose to go, and what makes their sets delete those.

Together with fewer replicas the autoscaler writes, on the deployment, a list ``<machine>~<time>,…``
of those it wants gone. Each gets a priority and a time, by which its set deletes it first. A set
deletes them even if it has nothing too many, once it bears a time of change that is no earlier: the
pods have left them, and their Nodes are cordoned. That time comes with the set's new size, in one
write; before it no mark may be due, or the set would replace who was only to go. So whoever is
scaled up again in the meantime loses the machine all the same, and gets another one for it.

Entries that have done their work, or never can, are taken out of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, final

from mcm.api.machine import Machine, MachineDeployment, MachineSet
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import (
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_TRIGGER_DELETION,
    PRIORITY_DELETE_FIRST,
)
from mcm.api.timestamps import parse_rfc3339, rfc3339
from mcm.controllers.replicas.deletion_order import (
    is_marked_for_deletion,
    marked_for_deletion_at,
    replicas_changed_at,
)
from mcm.controllers.replicas.membership import is_failed, is_terminating

_LATER: Final = timedelta(seconds=1)
"""Stored times are whole seconds, and two changes may fall into one."""


@final
@dataclass(frozen=True, slots=True)
class ScaleDownMarks:
    """``machines`` with the change each needs; ``change`` of the deployment's list, if any."""

    machines: tuple[tuple[Machine, JSONObject], ...] = ()
    change: JSONObject | None = None


def scale_down_marks(
    deployment: MachineDeployment,
    find: Callable[[str], Machine | None],
    now: datetime,
    *,
    changed_at: Callable[[Machine], datetime | None],
) -> ScaleDownMarks:
    """Read the list. ``find`` returns the deployment's machine of a name, None if it has none, and
    ``changed_at`` the time of change that a machine's set bears already."""
    annotations = deployment.metadata.annotations
    text = annotations.get(ANNOTATION_TRIGGER_DELETION)
    if text is None:
        return ScaleDownMarks()
    when_unsaid = annotations.get(ANNOTATION_REPLICA_CHANGE_BY_SCALER, rfc3339(now))
    pending = {
        name: (machine, time)
        for name, time in _entries(text, when_unsaid)
        if (machine := find(name)) is not None and _is_to_go(machine)
    }
    listed = ",".join(f"{name}~{time}" for name, (_, time) in pending.items()) or None
    kept: JSONObject = {ANNOTATION_TRIGGER_DELETION: listed}
    changes = ((m, _mark(m, time, changed_at(m))) for m, time in pending.values())
    return ScaleDownMarks(
        machines=tuple((machine, change) for machine, change in changes if change),
        change={"metadata": {"annotations": kept}} if listed != text else None,
    )


def due_annotations(
    deployment: MachineDeployment, machine_set: MachineSet, machines: Iterable[Machine]
) -> Mapping[str, str]:
    """Return the time of change, as an annotation, by which those of a set's ``machines`` go that
    are listed and marked; empty if none of them is."""
    text = deployment.metadata.annotations.get(ANNOTATION_TRIGGER_DELETION, "")
    listed = {entry.strip().partition("~")[0] for entry in text.split(",")}
    due = (m for m in machines if m.metadata.name in listed and is_marked_for_deletion(m))
    times = [rfc3339(at) for m in due if (at := marked_for_deletion_at(m)) is not None]
    return _latest(deployment.metadata, machine_set.metadata, *times) if times else {}


def followed_annotations(
    deployment: MachineDeployment, machine_set: MachineSet | None = None
) -> Mapping[str, str]:
    """Return the time of change, as an annotation, that the new set has from its deployment, unless
    it bears a later one; empty if there is none."""
    metas = (deployment.metadata, *((machine_set.metadata,) if machine_set else ()))
    return _latest(*metas)


def _latest(*sources: ObjectMeta | str) -> Mapping[str, str]:
    key = ANNOTATION_REPLICA_CHANGE_BY_SCALER
    said = (s if isinstance(s, str) else s.annotations.get(key, "") for s in sources)
    latest = max(filter(_is_time, said), key=parse_rfc3339, default=None)
    return {key: latest} if latest is not None else {}


def time_of_change(sets: Iterable[MachineSet]) -> Callable[[Machine], datetime | None]:
    """Return what tells the time of change that a machine's set, one of ``sets``, bears."""
    times = {s.metadata.uid: replicas_changed_at(s) for s in sets}

    def of(machine: Machine) -> datetime | None:
        owner = machine.metadata.controller_ref()
        return times.get(owner.uid) if owner is not None else None

    return of


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


def _mark(machine: Machine, time: str, changed_at: datetime | None) -> JSONObject:
    """Return the change that marks ``machine``, with a time its set bears not yet."""
    if is_marked_for_deletion(machine):
        return {}
    if changed_at is not None and parse_rfc3339(time) <= changed_at:
        time = rfc3339(changed_at + _LATER)
    mark: JSONObject = {
        ANNOTATION_PRIORITY: PRIORITY_DELETE_FIRST,
        ANNOTATION_MARKED_FOR_DELETION: time,
    }
    return {"metadata": {"annotations": mark}}
