"""Machines without an owner which a deployment's new set shall adopt, and what it waits for.

A set deleted with ``--cascade=orphan`` leaves its machines behind. The set that replaces it adopts
them if it selects by the label they bear, and is not made before that is certain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from mcm.api.machine import Machine, MachineDeployment, MachineSet, MachineTemplate
from mcm.api.names import LABEL_MACHINE_TEMPLATE_HASH
from mcm.api.templates import annotations_of, class_of, labels_of
from mcm.controllers.deployment.templates import same_template
from mcm.controllers.owning import is_orphaning
from mcm.controllers.replicas.membership import is_terminating

_PATIENCE: Final = timedelta(minutes=1)


def undecided(
    deployment: MachineDeployment,
    sets: Iterable[MachineSet],
    machines_of: Callable[[MachineSet], Sequence[Machine]],
    now: datetime,
) -> Sequence[MachineSet]:
    """Return the sets of the deployment's template of which it is not known yet whether they leave
    machines behind."""
    template = deployment.spec.template
    return [
        s
        for s in sets
        if s.metadata.deletion_timestamp is not None
        and same_template(s.spec.template, template)
        and _is_undecided(s, machines_of(s), now)
    ]


def _is_undecided(machine_set: MachineSet, machines: Sequence[Machine], now: datetime) -> bool:
    """A set that is given the time takes its machines along, or lets them go, within seconds. That
    the garbage collector has been there may show before what it did to the machines."""
    if is_orphaning(machine_set):
        return True
    taken_along = bool(machines) and all(map(is_terminating, machines))
    return not taken_along and not is_overdue(machine_set, now)


def is_overdue(machine_set: MachineSet, now: datetime) -> bool:
    """Tell whether what becomes of ``machine_set`` takes longer than a garbage collector needs."""
    since = machine_set.metadata.deletion_timestamp
    return since is not None and now - since > _PATIENCE


def mark_of(
    template: MachineTemplate, machines: Iterable[Machine], *, taken: Collection[str]
) -> str | None:
    """Return the template hash that most of ``machines`` bear, of those made from ``template``;
    None if there are none. What is ``taken`` tells other sets' machines."""
    marks = Counter(
        mark
        for machine in machines
        if (mark := machine.metadata.labels.get(LABEL_MACHINE_TEMPLATE_HASH))
        and mark not in taken
        and _is_made_from(machine, template)
    )
    ranked = sorted(marks, key=lambda mark: (-marks[mark], mark))
    return ranked[0] if ranked else None


def _is_made_from(machine: Machine, template: MachineTemplate) -> bool:
    labels = labels_of(template)
    labels.pop(LABEL_MACHINE_TEMPLATE_HASH, None)
    had, has = machine.spec.class_, class_of(template)
    return (
        (had.name, had.api_group) == (has.name, has.api_group)
        and labels.items() <= machine.metadata.labels.items()
        and annotations_of(template).items() <= machine.metadata.annotations.items()
    )
