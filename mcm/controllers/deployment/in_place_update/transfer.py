"""Which updated machines change their set, and the one patch of a machine that does it.

Owner and labels change together: at no moment the machine is in two sets, or in none. VM, class and
all else stay: a class is what the VM was made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import final

from mcm.api.codec import to_json_object
from mcm.api.machine import MACHINE_SETS, Machine, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_UPDATE_RESULT, UPDATE_RESULT_SUCCESSFUL
from mcm.api.templates import labels_of
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.in_place_update.standing import (
    Member,
    Standing,
    UpdateView,
    is_locked,
)
from mcm.controllers.owning import controller_reference
from mcm.controllers.replicas.membership import is_pinned, is_terminating


@final
@dataclass(frozen=True, slots=True)
class Move:
    """``member`` leaves its set for ``target``."""

    member: Member
    target: MachineSet


def departures(view: UpdateView) -> Iterator[Move]:
    """Yield the machines which belong to another set by now, as they are updated for it.

    Only what the Node records counts: whatever else could be guessed may have been changed by
    somebody since the node agent was asked.
    """
    for member in view.members.values():
        if member.standing is not Standing.UPDATED or not member.recorded:
            continue
        target = view.destination(member)
        leaving = member.owner.metadata.deletion_timestamp is not None
        if target is not None and target is not member.owner and not leaving:
            yield Move(member, target)


def moves(view: UpdateView) -> Iterator[Move]:
    """Yield the departures that may happen now: the set left behind makes no other machine."""
    return (move for move in departures(view) if is_locked(move.member.owner))


def transfer_change(machine: Machine, source: MachineSet, target: MachineSet) -> JSONObject:
    """Return the change that moves ``machine``. It bears the labels by which its new set selects
    and those of its template, none by which only the former one did, and the mark that it came."""
    others = (r for r in machine.metadata.owner_references if r.uid != source.metadata.uid)
    references = (*others, controller_reference(MACHINE_SETS, target.metadata))
    given = {**labels_of(target.spec.template), **_selected_by(target)}
    present = machine.metadata.labels
    had = {**labels_of(source.spec.template), **_selected_by(source)}
    labels: dict[str, str | None] = {k: None for k in had if k in present and k not in given}
    labels |= {k: v for k, v in given.items() if present.get(k) != v}
    labels[LABEL_UPDATE_RESULT] = UPDATE_RESULT_SUCCESSFUL
    return {
        "metadata": {
            "ownerReferences": [to_json_object(r) for r in references],
            "labels": labels,
        }
    }


def unpinned(
    snapshot: DeploymentSnapshot, *, resized: AbstractSet[str] = frozenset()
) -> Iterator[tuple[Machine, JSONObject]]:
    """Yield the machines whose sets, by size, account for them, with the change that takes the mark
    off that they came. ``resized`` sets, by UID, got their sizes just now."""
    for owner in snapshot.sets:
        machines = snapshot.machines[owner.metadata.uid]
        staying = sum(not is_terminating(m) for m in machines)
        if owner.metadata.uid in resized or owner.spec.replicas >= staying:
            for machine in machines:
                if is_pinned(machine) and not is_terminating(machine):
                    yield machine, {"metadata": {"labels": {LABEL_UPDATE_RESULT: None}}}


def _selected_by(machine_set: MachineSet) -> dict[str, str]:
    selector = machine_set.spec.selector
    return dict(selector.match_labels) if selector is not None else {}
