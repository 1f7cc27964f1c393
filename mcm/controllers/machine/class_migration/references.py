"""Who refers to a class of an older kind, and how all of them are led to the new one.

A deployment hands the kind down to its sets, and a set to its machines, without replacing any. So
the change comes from above: the other way round it would be undone. It holds the kind alone, so it
is bound to the version that was read: whoever names another class by now is not meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import KIND_MACHINE_CLASS
from mcm.api.templates import class_of
from mcm.client.verbs import ObjectWriter
from mcm.controllers.fanout import patch_each, raise_together
from mcm.controllers.machine.class_migration.older_class import OlderClass
from mcm.controllers.preconditions import for_this_version
from mcm.informers.store import Store

_KIND: JSONObject = {"kind": KIND_MACHINE_CLASS}
_OF_A_TEMPLATE: JSONObject = {"spec": {"template": {"spec": {"class": _KIND}}}}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """All that can name a class."""

    machines: Store[Machine]
    sets: Store[MachineSet]
    deployments: Store[MachineDeployment]
    writer: ObjectWriter

    async def lead_templates_over(self, older: OlderClass) -> None:
        """Change deployments, then sets. Raises what the writes raised."""
        deployments = (
            (deployment.metadata, _OF_A_TEMPLATE)
            for deployment in self.deployments.list(older.namespace)
            if older.is_named_by(class_of(deployment.spec.template))
        )
        errors = await patch_each(
            self.writer, MACHINE_DEPLOYMENTS, deployments, bound=for_this_version
        )
        raise_together(f"machine deployments of {older}", errors)
        errors = await patch_each(
            self.writer, MACHINE_SETS, self._set_changes(older), bound=for_this_version
        )
        raise_together(f"machine sets of {older}", errors)

    async def lead_machines_over(self, older: OlderClass) -> None:
        """Change the machines. Raises what the writes raised."""
        machines: Iterable[tuple[ObjectMeta, JSONObject]] = (
            (machine.metadata, {"spec": {"class": _KIND}})
            for machine in self.machines.list(older.namespace)
            if older.is_named_by(machine.spec.class_)
        )
        errors = await patch_each(self.writer, MACHINES, machines, bound=for_this_version)
        raise_together(f"machines of {older}", errors)

    def _set_changes(self, older: OlderClass) -> Iterator[tuple[ObjectMeta, JSONObject]]:
        for machine_set in self.sets.list(older.namespace):
            spec: JSONObject = {}
            if older.is_named_by(class_of(machine_set.spec.template)):
                spec["template"] = {"spec": {"class": _KIND}}
            own = machine_set.spec.machine_class
            if own is not None and older.is_named_by(own):
                spec["machineClass"] = _KIND
            if spec:
                yield machine_set.metadata, {"spec": spec}
