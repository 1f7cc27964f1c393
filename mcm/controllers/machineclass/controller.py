"""Wiring and body of the machine class controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine, MachineClass
from mcm.api.meta import split_key
from mcm.api.names import MACHINE_FINALIZER
from mcm.client.errors import NotFound
from mcm.controllers.context import ControllerContext
from mcm.controllers.indexes import index_machines, machines_of_class
from mcm.controllers.protection import protection_patch
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.controllers.seams import ObjectWriter
from mcm.informers import Change, Store
from mcm.workqueue import INITIAL_PRIORITY

NAME = "machineclass"

_LOOK_AGAIN = 60.0
"""Seconds, while a machine that cannot be read might be using any class."""


@final
class MachineClassReconciler:
    """Keeps the finalizer of each class in step with its use."""

    def __init__(
        self,
        classes: Store[MachineClass],
        machines: Store[Machine],
        writer: ObjectWriter,
    ) -> None:
        self._classes = classes
        self._machines = machines
        self._writer = writer

    async def reconcile(self, key: str) -> Outcome:
        class_ = self._classes.get(key)
        if class_ is None:
            return DONE
        used = bool(machines_of_class(self._machines, key))
        patch = protection_patch(class_.metadata, MACHINE_FINALIZER, used=used)
        if patch is None:
            return DONE
        if not used and self._machines.unreadable:
            return Outcome(after=_LOOK_AGAIN, reason="machines that cannot be read")
        namespace, name = split_key(key)
        try:
            await self._writer.patch(MACHINE_CLASSES, name, patch, namespace=namespace)
        except NotFound:
            return DONE
        return DONE


def classes_of_machine_change(change: Change[Machine]) -> Sequence[str]:
    """Return the keys of the classes a machine uses or used, unless neither changed."""
    old, new = change.old, change.new
    if change.resync or (old and new and old.spec.class_ == new.spec.class_):
        return ()
    found = (m for m in (old, new) if m is not None and m.spec.class_.name)
    return tuple(dict.fromkeys(f"{m.metadata.namespace}/{m.spec.class_.name}" for m in found))


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    classes = ctx.control_informers.informer(MACHINE_CLASSES)
    machines = ctx.control_informers.informer(MACHINES)
    index_machines(machines.store)
    queue = ctx.queue(NAME)
    reconciler = MachineClassReconciler(classes.store, machines.store, ctx.control_informers.writer)

    def on_class(change: Change[MachineClass]) -> None:
        if change.new is not None:
            priority = INITIAL_PRIORITY if change.initial or change.resync else 0
            queue.add(change.new.metadata.key, priority=priority)

    def on_machine(change: Change[Machine]) -> None:
        for key in classes_of_machine_change(change):
            queue.add(key, priority=INITIAL_PRIORITY if change.initial else 0)

    classes.add_handler(on_class)
    machines.add_handler(on_machine)
    workers = ctx.options.machine_concurrent_syncs
    return (ctx.controller(NAME, queue, reconciler.reconcile, workers=workers),)
