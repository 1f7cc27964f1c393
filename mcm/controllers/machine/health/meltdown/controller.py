"""Wiring of meltdown protection: what it counts, and the controller that sees its holds end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine, MachineClass
from mcm.controllers.context import ControllerContext
from mcm.controllers.indexes import machines_of_class, machines_on
from mcm.controllers.machine.health.meltdown.fleet_health import FleetHealth
from mcm.controllers.machine.health.meltdown.hold import Threshold
from mcm.controllers.machine.health.meltdown.protection import MeltdownProtection
from mcm.controllers.machine.zone import zone_of
from mcm.controllers.node_ownership import NodeOwners
from mcm.controllers.runtime import Controller
from mcm.informers import Change

NAME = "meltdownprotection"
_KEY = "fleet"


def build(
    ctx: ControllerContext, *, wake: Callable[[Iterable[str]], None]
) -> tuple[MeltdownProtection, Controller]:
    """Make the protection, and the controller that keeps it up to date; nothing runs yet.

    ``wake`` is called with the keys of machines that were held and are not any more. The indexes of
    machines by Node and by class must be there.
    """
    classes = ctx.control_informers.store(MACHINE_CLASSES)
    owners = None
    if ctx.target_informers is not None:
        machines = ctx.control_informers.store(MACHINES)
        owners = NodeOwners(machines, ctx.target_informers.store(NODES), ctx.namespace)
    queue = ctx.queue(NAME)

    def locate(machine: Machine) -> str:
        node = owners.own_node(machine) if owners is not None else None
        class_ = classes.get(f"{machine.metadata.namespace}/{machine.spec.class_.name}")
        return zone_of(machine, node, class_)

    fleet = FleetHealth(locate=locate, changed=lambda: queue.add(_KEY))
    settings = ctx.options
    least = settings.unhealthy_min
    protection = MeltdownProtection(
        fleet,
        of_zone=Threshold(settings.unhealthy_zone_threshold, least),
        of_fleet=Threshold(settings.unhealthy_fleet_threshold, least),
        wake=wake,
        clock=ctx.clock,
        registry=ctx.registry,
    )
    _count(ctx, fleet)
    return protection, ctx.controller(NAME, queue, protection.reconcile, workers=1)


def _count(ctx: ControllerContext, fleet: FleetHealth) -> None:
    """Tell ``fleet`` of every machine that changes, or whose zone may have become known."""
    informer = ctx.control_informers.informer(MACHINES)
    machines = informer.store

    def of_class(change: Change[MachineClass]) -> None:
        if change.old is None or change.new is None or _zone(change.old) != _zone(change.new):
            for machine in machines_of_class(machines, change.object.metadata.key):
                fleet.look(machine)

    def of_node(change: Change[Node]) -> None:
        old, new = change.old, change.new
        if new is None or (old is not None and old.metadata.labels == new.metadata.labels):
            return
        for machine in machines_on(machines, new.metadata.name):
            fleet.look(machine)

    informer.add_handler(fleet.note)
    ctx.control_informers.informer(MACHINE_CLASSES).add_handler(of_class)
    if ctx.target_informers is not None:
        ctx.target_informers.informer(NODES).add_handler(of_node)


def _zone(class_: MachineClass) -> str:
    return class_.node_template.zone if class_.node_template else ""
