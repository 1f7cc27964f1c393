"""Giving an adopted set the label that tells a deployment's sets apart.

A set that was made by hand selects by the deployment's labels alone, and so would select the
machines of its siblings. In the order that never loses one of its machines: the template gets the
label, so that new machines have it, then the machines, and last the selector. Each call says what
is to be done now; nothing waits in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from mcm.api.machine import Machine, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_MACHINE_TEMPLATE_HASH
from mcm.api.templates import labels_of
from mcm.controllers.deployment.template_identity import template_hash
from mcm.controllers.replicas.membership import is_terminating


@final
@dataclass(frozen=True, slots=True)
class Labelling:
    """``machines`` get the label ``mark``; ``change`` is the next one of the set itself."""

    mark: str
    machines: tuple[Machine, ...] = ()
    change: JSONObject | None = None

    @property
    def of_a_machine(self) -> JSONObject:
        """The change that every one of ``machines`` needs."""
        return {"metadata": {"labels": {LABEL_MACHINE_TEMPLATE_HASH: self.mark}}}


def plan(machine_set: MachineSet, machines: Iterable[Machine]) -> Labelling | None:
    """Return the next step; None if the set selects by the label already."""
    selector = machine_set.spec.selector
    if selector is None or LABEL_MACHINE_TEMPLATE_HASH in selector.match_labels:
        return None
    in_template = labels_of(machine_set.spec.template).get(LABEL_MACHINE_TEMPLATE_HASH)
    mark = in_template or template_hash(machine_set.spec.template)
    label = {LABEL_MACHINE_TEMPLATE_HASH: mark}
    if in_template is None:
        return Labelling(mark, change={"spec": {"template": {"metadata": {"labels": label}}}})
    unmarked = tuple(
        m
        for m in machines
        if not is_terminating(m) and m.metadata.labels.get(LABEL_MACHINE_TEMPLATE_HASH) != mark
    )
    if unmarked:
        return Labelling(mark, machines=unmarked)
    return Labelling(
        mark,
        change={"metadata": {"labels": label}, "spec": {"selector": {"matchLabels": label}}},
    )
