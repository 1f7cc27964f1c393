"""Wiring of the machine class controller: machines use classes."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.names import MACHINE_FINALIZER
from mcm.controllers.context import ControllerContext
from mcm.controllers.finalizers import InUse, build_in_use, keeping
from mcm.controllers.indexes import class_keys_of, has_machines, index_machines
from mcm.controllers.runtime import Controller

NAME = "machineclass"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    informers = ctx.control_informers
    machines = informers.store(MACHINES)
    index_machines(machines)
    in_use = InUse(
        used=MACHINE_CLASSES,
        users=MACHINES,
        uses=class_keys_of,
        told_at=("spec.class",),
        is_used=lambda class_: has_machines(machines, class_.metadata.key),
        decide=keeping(MACHINE_FINALIZER),
    )
    return (build_in_use(ctx, NAME, in_use, used_from=informers, users_from=informers),)
