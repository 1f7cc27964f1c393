"""What a change of ``spec.replicas`` means: the size of each set, and which machines go first.

Sets say, in annotations, how many replicas their deployment wanted when they were last scaled: if a
set in use names another number than the spec, a change is due. With one set in use, that set gets
the new size. In the middle of an update, growth goes to the new set, and a reduction is shared in
proportion to the sets' sizes, after the machines that were chosen to go first.

Together with fewer replicas the cluster autoscaler writes, on the deployment, a list
``<machine>~<time>,…`` of those it wants gone. Each gets a priority and a time, by which its set
deletes it first. Entries that have done their work, or never can, are taken out of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

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
from mcm.controllers.deployment.bounds import Bounds, must_serve, room, serving_at
from mcm.controllers.deployment.fleet import Fleet, SetState, Targets
from mcm.controllers.replicas.membership import is_failed, is_terminating

_KEEP_ALL: Final[Targets] = {}


def is_due(fleet: Fleet, bounds: Bounds) -> bool:
    """Tell whether ``spec.replicas`` changed since the sets were last scaled.

    Without a new set it counts as unchanged: the update, which comes first, sizes that one.
    """
    return fleet.new is not None and scaled_for_another_size(fleet, bounds)


def scaled_for_another_size(fleet: Fleet, bounds: Bounds) -> bool:
    """Tell whether a set in use was last scaled for another number of replicas."""
    return any(s.desired not in (None, bounds.desired) for s in fleet.active)


def asked_for(fleet: Fleet, bounds: Bounds) -> int:
    """How many more machines are wanted than when the sets in use were last scaled.

    From zero nothing counts as asked for: what others say may be of long ago.
    """
    if len(fleet.active) == 1:
        (only,) = fleet.active
        before = only.replicas if only.desired is None else only.desired
        return max(0, bounds.desired - before)
    known = [s.most for s in fleet.active if s.most is not None]
    return max(0, bounds.most - max(known, default=bounds.most))


def sizes(fleet: Fleet, bounds: Bounds) -> Targets:
    """Return the sizes that follow from ``bounds.desired``; sets that keep theirs are left out."""
    if len(fleet.active) <= 1:
        return _resize_the_only_one(fleet, bounds)
    if _is_saturated(fleet.new, bounds):
        return {s.uid: 0 for s in fleet.old if s.replicas > 0}
    if not scaled_for_another_size(fleet, bounds):
        return _KEEP_ALL  # paused in the middle of an update: stay there
    missing = bounds.most - fleet.replicas()
    if missing >= 0:
        return _grow(fleet, bounds, missing)
    return _changed(fleet, _shrink(fleet, bounds, -missing))


def _growing(fleet: Fleet) -> SetState | None:
    """The set that takes growth: the only one in use, else the new one, else the newest old one."""
    if len(fleet.active) == 1:
        return fleet.active[0]
    return fleet.new or (fleet.old[-1] if fleet.old else None)


def _resize_the_only_one(fleet: Fleet, bounds: Bounds) -> Targets:
    only = _growing(fleet)
    if only is None or only.replicas == bounds.desired:
        return _KEEP_ALL
    if only.replicas > bounds.desired:
        return {only.uid: bounds.desired}
    return _grow(fleet, bounds, bounds.desired - only.replicas)


def _grow(fleet: Fleet, bounds: Bounds, missing: int) -> Targets:
    """Grow by what was asked for, at once, and by whatever else there is room for."""
    grows = _growing(fleet)
    if grows is None:
        return _KEEP_ALL
    allowed = max(room(fleet, bounds), asked_for(fleet, bounds))
    growth = min(missing, allowed, bounds.desired - grows.replicas)
    return {grows.uid: grows.replicas + growth} if growth > 0 else _KEEP_ALL


def _is_saturated(new: SetState | None, bounds: Bounds) -> bool:
    return (
        new is not None
        and new.replicas == bounds.desired == new.available
        and new.desired in (None, bounds.desired)
    )


def _shrink(fleet: Fleet, bounds: Bounds, surplus: int) -> dict[str, int]:
    """Take ``surplus`` replicas from the sets in use, the largest first."""
    ordered = sorted(fleet.active, key=lambda s: -s.replicas)  # stable: of equals the older first
    targets = {s.uid: s.replicas for s in ordered}
    left = surplus
    for state in ordered:
        taken = min(state.chosen, state.replicas, left)
        targets[state.uid] -= taken
        left -= taken
    for state in ordered:
        due = targets[state.uid] - _proportion(state, fleet, bounds)
        taken = max(0, min(due, left))
        targets[state.uid] -= taken
        left -= taken
    for state in ordered:  # what rounding left over
        taken = min(targets[state.uid], left)
        targets[state.uid] -= taken
        left -= taken
    return _serving_on(fleet, ordered, targets, bounds)


def _proportion(state: SetState, fleet: Fleet, bounds: Bounds) -> int:
    """The set's part of what the deployment may have now, rounded half up."""
    if bounds.desired == 0:
        return 0
    before = state.most or sum(s.reported for s in fleet.living) or fleet.replicas()
    return (2 * state.replicas * bounds.most + before) // (2 * before)


def _serving_on(
    fleet: Fleet, ordered: Sequence[SetState], targets: dict[str, int], bounds: Bounds
) -> dict[str, int]:
    """Where the shares would cost machines that must go on serving, take idle ones instead."""
    floor = must_serve(fleet, bounds)
    left, owed = fleet.guaranteed(targets), 0
    for state in ordered:
        useful = min(state.replicas, len(state.serving))
        while targets[state.uid] < useful and left < floor:
            targets[state.uid] += 1
            left += state.loss(targets[state.uid])
            owed += 1
    for spare in (0, max(0, left - serving_at(bounds.least, fleet))):
        for state in ordered:  # a failing rollout keeps all that works, but not against its user
            before = targets[state.uid]
            targets[state.uid] = state.reduced(before, owed, losing=spare)
            spare -= state.guaranteed(before) - state.guaranteed(targets[state.uid])
            owed -= before - targets[state.uid]
    return targets


def _changed(fleet: Fleet, targets: Targets) -> Targets:
    return {
        s.uid: targets[s.uid] for s in fleet.living if targets.get(s.uid, s.replicas) != s.replicas
    }


# ---- machines chosen by the autoscaler -----------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class ScaleDownMarks:
    """``machines`` with the change each needs; ``change`` of the deployment's list, if any."""

    machines: tuple[tuple[Machine, JSONObject], ...] = ()
    change: JSONObject | None = None


def scale_down_marks(
    deployment: MachineDeployment, find: Callable[[str], Machine | None], now: datetime
) -> ScaleDownMarks:
    """Read the list. ``find`` returns the deployment's machine of a name, None if it has none."""
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
    changes = ((machine, _mark(machine, time)) for machine, time in pending.values())
    return ScaleDownMarks(
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
