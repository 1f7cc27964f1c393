"""Wiring of the orphan collection: every class in its own time, sooner after a machine is gone."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import SECRETS, Secret
from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine, MachineClass
from mcm.controllers.context import ControllerContext
from mcm.controllers.indexes import classes_using, index_classes
from mcm.controllers.provider import collect
from mcm.controllers.runtime import Controller
from mcm.controllers.safety.collector import OrphanCollector
from mcm.controllers.safety.orphans import is_ambiguous
from mcm.controllers.safety.report import OrphanMetrics, OrphanReport
from mcm.controllers.safety.siblings import Siblings
from mcm.informers import Change
from mcm.workqueue import INITIAL_PRIORITY

NAME = "machinesafetyorphanvms"

_WORKERS = 4
_SETTLE = 30.0
"""Seconds after a machine's end at which to look: one look for all that end about the same time."""


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    classes = ctx.control_informers.informer(MACHINE_CLASSES)
    machines = ctx.control_informers.informer(MACHINES)
    secrets = ctx.control_informers.informer(SECRETS)
    index_classes(classes.store)
    queue = ctx.queue(NAME)
    collector = OrphanCollector(
        classes=classes.store,
        machines=machines.store,
        credentials=lambda machine_class: collect(machine_class, secrets.store.get),
        provider=ctx.provider,
        reader=ctx.control,
        report=OrphanReport(ctx.events, OrphanMetrics.of(ctx.registry)),
        siblings=Siblings(ctx.control, ctx.options.sibling_namespaces),
        clock=ctx.clock,
        period=ctx.options.orphan_vms_period.total_seconds(),
        random=ctx.random,
    )

    def on_class(change: Change[MachineClass]) -> None:
        key = change.object.metadata.key
        if change.old is None or change.new is None or mends(key, change):
            queue.add(key, priority=INITIAL_PRIORITY)

    def on_secret(change: Change[Secret]) -> None:
        for class_ in classes_using(classes.store, change.object.metadata.key):
            if mends(class_.metadata.key, change):
                queue.add(class_.metadata.key, priority=INITIAL_PRIORITY)

    def mends(key: str, change: Change[MachineClass] | Change[Secret]) -> bool:
        return not change.resync and collector.is_failing(key)

    def on_machine(change: Change[Machine]) -> None:
        if key := class_to_look_at(change):
            queue.add_after(key, _SETTLE, priority=INITIAL_PRIORITY)

    classes.add_handler(on_class)
    machines.add_handler(on_machine)
    secrets.add_handler(on_secret)
    return (ctx.controller(NAME, queue, collector.reconcile, workers=_WORKERS, regards=classes),)


def class_to_look_at(change: Change[Machine]) -> str:
    """Return the key of the class to look at because of a machine's change; empty: none.

    A machine that is gone may have left a VM behind, one whose provider finds several has.
    """
    old, new = change.old, change.new
    machine = change.object
    ambiguous = new is not None and is_ambiguous(new) and not (old and is_ambiguous(old))
    if not machine.spec.class_.name or (new is not None and not ambiguous):
        return ""
    return f"{machine.metadata.namespace}/{machine.spec.class_.name}"
