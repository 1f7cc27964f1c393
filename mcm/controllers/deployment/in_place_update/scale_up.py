"""Which sets may make no machines, by the label ``scale-up-disabled``: their machines are updated.

It is there before the first machine leaves its set, and goes when the set is used otherwise again:
when its template is the wanted one, the strategy another, or the deployment paused.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.machine import MachineSet
from mcm.api.names import LABEL_SCALE_UP_DISABLED
from mcm.controllers.deployment.in_place_update.node_marks import ASKED, bears_marks
from mcm.controllers.deployment.in_place_update.standing import UpdateView, is_locked
from mcm.controllers.deployment.in_place_update.transfer import departures


def locked_labels(view: UpdateView, machine_set: MachineSet) -> Mapping[str, str]:
    """Return the labels that ``machine_set`` should bear."""
    labels = machine_set.metadata.labels
    if is_locked(machine_set):
        if not _may_be_unlocked(view, machine_set):
            return labels
        return {k: v for k, v in labels.items() if k != LABEL_SCALE_UP_DISABLED}
    if _is_to_be_locked(view, machine_set):
        return {**labels, LABEL_SCALE_UP_DISABLED: ASKED}
    return labels


def _is_to_be_locked(view: UpdateView, machine_set: MachineSet) -> bool:
    in_use = machine_set.spec.replicas > 0 or view.snapshot.machines[machine_set.metadata.uid]
    if view.going_on and machine_set is not view.new and in_use:
        return is_locked(machine_set) or not _has_arrivals(view, machine_set)
    return any(move.member.owner is machine_set for move in departures(view))


def _has_arrivals(view: UpdateView, machine_set: MachineSet) -> bool:
    """Tell whether a machine is to be returned to service in the set, and only the missing label
    says that it came into it and is not to leave it."""
    return any(
        m.owner is machine_set and m.awaits_hand_over and not m.recorded
        for m in view.members.values()
    )


def _may_be_unlocked(view: UpdateView, machine_set: MachineSet) -> bool:
    if _is_to_be_locked(view, machine_set) or view.is_settling():
        return False
    if view.strategy and machine_set is not view.new and not view.snapshot.deployment.spec.paused:
        return False  # an old one, empty: of no consequence
    # The label is what tells the Go original's marks on Nodes from a person's.
    return not any(
        m.node is not None and bears_marks(m.node) and not (view.strategy and m.recorded)
        for m in view.members.values()
        if m.owner is machine_set or m.awaits_hand_over
    )
